"""Changes a notebook over a connection that loses the first PATCH, and once more after a refusal with 503. Prints both titles."""

import json
from typing import Any

import httpx2

from troupe_client import Troupe


class RefusedOnce(httpx2.HTTPTransport):
    """Answers the first PATCH with a 503 that it makes itself."""

    refused = False

    def handle_request(self, request: httpx2.Request) -> Any:
        if request.method != "PATCH" or self.refused:
            return super().handle_request(request)
        self.refused = True
        return httpx2.Response(503, headers={"retry-after": "0"})


with Troupe() as troupe, httpx2.Client(transport=RefusedOnce()) as http:
    changed = troupe.notebooks.update(troupe.notebooks.create(title="before"), title="after")
    later = Troupe(http=http).notebooks.update(changed, title="later")
print(json.dumps([changed.title, later.title]))
