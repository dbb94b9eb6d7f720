import type { InnerRequests } from '#src/http/inner/inner-requests.ts';
import type { Operation } from './open-operation.ts';
import type { Planes } from './open-planes.ts';
import type { Upkeep } from './open-upkeep.ts';

/** Everything that a server has opened when it begins to listen. */
export interface Opened {
  readonly planes: Planes;
  readonly operation: Operation;
  readonly upkeep: Upkeep;
  readonly inner: InnerRequests;
}
