"""
Decodes a run in three ways in turn: by the client's models, by pydantic models of the same document, and in part.
Prints the microseconds of processor time of each as JSON.

usage: python decoding.py OPENAPI.json RUN.json ROUNDS
"""

import gc
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
from troupe_client import models
from troupe_client._decoding import decode
from write_models import GENERATOR, simplified, with_event_ids

PER_ROUND = 300


def pydantic_models(document: dict[str, Any], folder: str) -> Any:
    """Returns the module of pydantic models that the client's generator makes with the client's options."""
    source = Path(folder, "openapi.json")
    schemas = with_event_ids(simplified(document["components"]["schemas"]))
    source.write_text(json.dumps({**document, "components": {"schemas": schemas}}))
    options = GENERATOR.replace("msgspec.Struct", "pydantic_v2.BaseModel").replace("--use-msgspec-tagged-unions ", "")
    target = Path(folder, "pydantic_models.py")
    command = [sys.executable, "-m", *options.split(), "--input", str(source), "--output", str(target)]
    subprocess.run(command, check=True)
    sys.path.insert(0, folder)
    import pydantic_models as made  # type: ignore[import-not-found]

    return made


def texts_of(value: Any) -> list[str]:
    """Returns every text in decoded JSON, without the names of members."""
    if isinstance(value, str):
        return [value]
    members = value.values() if isinstance(value, dict) else value if isinstance(value, list) else []
    return [text for member in members for text in texts_of(member)]


def cost_of(decoding: Callable[[], object]) -> float:
    """Returns the processor time of a decoding."""
    gc.collect()
    before = time.process_time()
    for _ in range(PER_ROUND):
        decoding()
    return (time.process_time() - before) * 1e6 / PER_ROUND


def main(document: str, run: str, rounds: str) -> None:
    content = Path(run).read_bytes()
    texts = msgspec.json.encode(texts_of(msgspec.json.decode(content)))
    skipping = msgspec.json.Decoder(msgspec.Raw)
    only_texts = msgspec.json.Decoder(list[str])
    with tempfile.TemporaryDirectory() as folder:
        pydantic_run = pydantic_models(json.loads(Path(document).read_text()), folder).NotebookRun
    decodings: dict[str, Callable[[], object]] = {
        "client": lambda: decode(content, models.NotebookRun),
        "pydantic": lambda: pydantic_run.model_validate_json(content),
        "json": lambda: json.loads(content),
        "skipped": lambda: skipping.decode(content),
        "texts": lambda: only_texts.decode(texts),
    }
    costs: dict[str, list[float]] = {name: [] for name in decodings}
    for _ in range(int(rounds)):
        for name, decoding in decodings.items():
            costs[name].append(cost_of(decoding))
    print(json.dumps({"bytes": len(content), **costs}))


main(*sys.argv[1:])
