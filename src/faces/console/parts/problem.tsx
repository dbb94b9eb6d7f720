import { ApiError, ConnectionError } from '#src/contract/client/api-error.ts';
import { valueText } from './words.ts';

/** Advice for errors that have no advice of their own. */
const ADVICE: Readonly<Record<number, string>> = {
  401: 'Sign out and paste a token that is still valid.',
  403: 'Ask an owner of the workspace for the right, or use a token that has the scope.',
  404: 'The resource may have been deleted, or may be in another workspace.',
  429: 'Wait a moment, then try again.',
  503: 'The server starts, stops, or misses something. Try again in a moment.',
};

interface ProblemProps {
  readonly error: unknown;
  /** A title in place of the title of the error, such as `data.ipynb was not imported`. */
  readonly title?: string;
  readonly retry?: () => void;
}

/** Shows an error with its title, its cause and advice. */
export function Problem({ error, title, retry }: ProblemProps) {
  const { title: ownTitle, code, detail, advice, requestId } = describe(error);
  return (
    <div class="problem" role="alert">
      <strong>{title ?? ownTitle}</strong>
      {code !== undefined && <code>{code}</code>}
      <p>{detail}</p>
      {advice !== undefined && <p class="advice">{advice}</p>}
      {requestId !== undefined && <p class="faint">Request {requestId}</p>}
      {retry !== undefined && (
        <button type="button" onClick={retry}>
          Try again
        </button>
      )}
    </div>
  );
}

interface Description {
  readonly title: string;
  readonly code?: string;
  readonly detail: string;
  readonly advice?: string;
  readonly requestId?: string;
}

function describe(error: unknown): Description {
  if (error instanceof ApiError) {
    const { title, advice }: { title?: unknown; advice?: unknown } = Object(error.body);
    return {
      title: title === undefined ? `The server answered ${error.status}` : valueText(title),
      code: error.code,
      detail: error.detail,
      ...definedAdvice(typeof advice === 'string' ? advice : ADVICE[error.status]),
      ...(error.requestId === undefined ? {} : { requestId: error.requestId }),
    };
  }
  if (error instanceof ConnectionError) {
    return {
      title: 'The server does not answer',
      detail: error.message,
      advice: 'Is it running? The console continues by itself when the server is back.',
    };
  }
  return {
    title: 'The console has made a mistake',
    detail: error instanceof Error ? error.message : String(error),
  };
}

function definedAdvice(advice: string | undefined): { readonly advice?: string } {
  return advice === undefined ? {} : { advice };
}
