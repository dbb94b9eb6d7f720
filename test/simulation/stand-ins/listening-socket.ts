/**
 * The one listening socket of a server with workers. A client's connection goes to a worker that accepts from it (`SimulatedCluster`),
 * so the descriptors here are only numbers.
 */
const DESCRIPTOR = 1_000_001;
const PORT = 4000;

export async function bindListener(): Promise<object> {
  return { descriptor: DESCRIPTOR, port: PORT };
}

export async function bindPath(): Promise<number> {
  return DESCRIPTOR;
}

export async function holdOtherFamily(): Promise<string[]> {
  return [];
}

export async function listenOnInherited(): Promise<void> {}

export async function loadInheritedListener(): Promise<object> {
  return { replace() {}, silence() {}, find: () => DESCRIPTOR };
}
