import { ApiError } from '#src/contract/client/api-error.ts';

/** Resolves with the result; undefined when the server refuses the request. */
export async function unlessRefused<T>(reading: Promise<T>): Promise<T | undefined> {
  try {
    return await reading;
  } catch (error) {
    if (error instanceof ApiError) return undefined;
    throw error;
  }
}
