"""
Reads a notebook by httpx2 and by the client in turn, and prints the microseconds of processor time of a request of each as JSON.

usage: python requests.py URL TOKEN WORKSPACE NOTEBOOK ROUNDS
"""

import gc
import json
import sys
import time
from collections.abc import Callable

import httpx2
from troupe_client import Troupe

PER_ROUND = 300


def cost_of(request: Callable[[], object]) -> float:
    """Returns the processor time of a request. The garbage of each round is collected in that round."""
    gc.collect()
    before = time.process_time()
    for _ in range(PER_ROUND):
        request()
    gc.collect()
    return (time.process_time() - before) * 1e6 / PER_ROUND


def main(base_url: str, token: str, workspace_id: str, notebook_id: str, rounds: str) -> None:
    headers = {"authorization": f"Bearer {token}", "service-workspace-id": workspace_id}
    url = f"{base_url}/api/v3/notebooks/{notebook_id}"
    with httpx2.Client() as http, Troupe(base_url=base_url, access_token=token, workspace_id=workspace_id) as troupe:

        def raw() -> object:
            return http.get(url, headers=headers).json()

        def client() -> object:
            return troupe.notebooks.get(notebook_id)

        for warm_up in (raw, client):
            cost_of(warm_up)
        costs: dict[str, list[float]] = {"raw": [], "client": []}
        for _ in range(int(rounds)):
            costs["raw"].append(cost_of(raw))
            costs["client"].append(cost_of(client))
    print(json.dumps(costs))


main(*sys.argv[1:])
