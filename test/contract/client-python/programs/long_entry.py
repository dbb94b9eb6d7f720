"""An answer that is longer than an event. Prints how its event, and its run, have it."""

import json

from troupe_client import Troupe
from troupe_client.models import AgentEntry, AgentEntryPage, TextPart


def text_of(entry: AgentEntry) -> TextPart:
    """Returns the last part of an entry, which is text."""
    part = entry.content[-1]
    assert isinstance(part, TextPart)
    return part


with Troupe() as troupe, troupe.converse() as agent:
    run = agent.start("Write a long answer.")
    entries = [event.data for event in run if event.type == "agent-entry" and event.data.role == "assistant"]
    cut = text_of(entries[-1])
    page = troupe.request("GET", f"/api/v3/agent-sessions/{agent.id}/entries", AgentEntryPage)
    whole = text_of(page.items[-1])
    short = text_of(page.items[0])
    print(
        json.dumps(
            {
                "begins": whole.text.startswith(cut.text) and len(cut.text) > 0,
                "omitted": isinstance(cut.omitted_chars, int) and len(cut.text) + cut.omitted_chars,
                "whole": [len(whole.text), bool(whole.omitted_chars), bool(short.omitted_chars)],
                "answer": len(run.result().answer),
            }
        )
    )
