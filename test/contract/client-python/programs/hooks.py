"""Works with hooks, whose receiver has the URL in RECEIVER. Prints the outcome."""

import json
import os
import time
import urllib.request

from troupe_client import ApiError, Troupe
from troupe_client.models import CreatedHook, HookDelivery


def arrived(troupe: Troupe, hook: CreatedHook, delivery: HookDelivery, attempts: int) -> HookDelivery:
    """Returns a delivery once it has arrived with this attempt."""
    while True:
        found = next(one for one in troupe.hooks.deliveries(hook) if one.id == delivery.id)
        if found.status == "delivered" and found.attempts == attempts:
            return found
        time.sleep(0.05)


def out(troupe: Troupe) -> dict[str, object]:
    hook = troupe.hooks.create(os.environ["RECEIVER"], ["run.failed"], metadata={"team": "sales"}, name="Failures", paused=True)
    try:
        troupe.hooks.test(hook)
        refused = ""
    except ApiError as error:
        refused = error.code
    resumed = troupe.hooks.resume(hook)
    first = arrived(troupe, hook, troupe.hooks.test(hook), 1)
    again = arrived(troupe, hook, troupe.hooks.replay(first), 2)
    rotated = troupe.hooks.rotate(hook)
    last = arrived(troupe, hook, troupe.hooks.test(hook.id), 1)
    changed = troupe.hooks.update(troupe.hooks.get(hook), events=["job.failed"])
    listed = [one.id for one in troupe.hooks.each()]
    paused = troupe.hooks.pause(hook)
    troupe.hooks.delete(hook)
    return {
        "refused": refused,
        "status": resumed.status,
        "secrets": [hook.secret, rotated.secret],
        "deliveries": [first.id, again.id, last.id],
        "events": changed.events,
        "listed": listed == [hook.id],
        "paused": paused.paused,
        "left": len(list(troupe.hooks.each())),
    }


def into(troupe: Troupe) -> dict[str, object]:
    job = troupe.jobs.create(troupe.notebooks.create(cells={"one": "1"}), "@yearly")
    hook = troupe.hooks.create_in(job, name="CI")
    address = hook.url if hook.url.startswith("http") else os.environ["SERVICE_BASE_URL"] + hook.url
    request = urllib.request.Request(address, method="POST", headers={"authorization": f"Bearer {hook.secret}"})
    with urllib.request.urlopen(request) as answer:
        status = answer.status
    listed = [(one.id == hook.id, one.name) for one in troupe.hooks.each_in(job)]
    triggers = [occurrence.trigger for occurrence in troupe.jobs.history(job)]
    troupe.hooks.delete_in(hook)
    return {"status": status, "listed": listed, "triggers": triggers, "left": len(list(troupe.hooks.each_in(job)))}


with Troupe() as troupe:
    print(json.dumps({"out": out(troupe), "in": into(troupe)}))
