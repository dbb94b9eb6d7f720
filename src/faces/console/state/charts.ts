/** The pictures of the statecharts, as the build has laid them out. They are loaded with the first actor. */
import { ApiError, ConnectionError } from '#src/contract/client/api-error.ts';
import { BASE_URL } from './server.ts';

export interface PlacedState {
  readonly id: string;
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

export interface RoutedTransition {
  readonly from: string;
  readonly to: string;
  /** Types of events. */
  readonly events: readonly string[];
  /** The lines of text for these events in the picture. Absent when the lines are the types of the events. */
  readonly lines?: readonly string[];
  readonly points: readonly (readonly [number, number])[];
  readonly label?: {
    readonly x: number;
    readonly y: number;
    readonly width: number;
    readonly height: number;
  };
}

export interface ChartDrawing {
  readonly width: number;
  readonly height: number;
  /** The states; a state comes before the states within it. */
  readonly states: readonly PlacedState[];
  readonly transitions: readonly RoutedTransition[];
}

let loaded: Promise<Readonly<Record<string, ChartDrawing>>> | undefined;

/**
 * Resolves with the picture of a machine, or undefined when it has none. Rejects with
 * `ConnectionError` or `ApiError`; the next call then tries again.
 */
export async function pictureOf(machine: string): Promise<ChartDrawing | undefined> {
  loaded ??= load();
  try {
    return (await loaded)[machine];
  } catch (error) {
    loaded = undefined;
    throw error;
  }
}

async function load(): Promise<Readonly<Record<string, ChartDrawing>>> {
  const url = `${BASE_URL}/console/${CHART_PICTURES}`;
  const response = await fetch(url).catch((error) => {
    throw new ConnectionError(url, error);
  });
  if (!response.ok) throw new ApiError(response.status, response.headers, await response.text());
  return response.json();
}
