"""Asks an agent, and prints the tokens of its models: those of a page, and those of all pages."""

import json

from troupe_client import Troupe

with Troupe() as troupe:
    with troupe.converse() as agent:
        agent.ask("Speak.")
    page = troupe.usage(limit=1).models
    sums = [[sum.model, sum.input_tokens, sum.output_tokens, sum.calls] for sum in troupe.model_usage(page.to, page.to)]
    print(json.dumps({"page": len(page.items), "sums": sums, "before": len(list(troupe.model_usage("2020-01-01", "2020-01-31")))}))
