#!/usr/bin/env python3
"""Load an export, take it through TRL's own prompt step, and print one row.

    python3 -m venv venv && venv/bin/pip install datasets trl
    venv/bin/python examples/load_preferences.py exports/corrections.jsonl

The file is the conversational preference form with an explicit prompt, so DPOTrainer takes the loaded dataset as it is:
`prompt` is what the model was given, `chosen` what it should have said, `rejected` what it said.

The row that is printed is private. So is what the library keeps: by itself it would leave a copy of every example in a
cache of its own, so this script gives it a temporary one that is gone at the end. A training script of yours should do
the same, or use a cache that lies where the export does.
"""

import json
import os
import sys
import tempfile

# Before the libraries are imported: nothing here needs a network.
for switch in ("HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE", "HF_HUB_DISABLE_TELEMETRY", "HF_DATASETS_DISABLE_PROGRESS_BARS"):
    os.environ.setdefault(switch, "1")

from datasets import load_dataset  # noqa: E402
from trl.data_utils import is_conversational, maybe_extract_prompt  # noqa: E402


def examine(row):
    """What a trainer needs of a row; the words themselves stay out of every message."""
    if not is_conversational(row):
        raise SystemExit("the row is not conversational")
    prompt, chosen, rejected = row["prompt"], row["chosen"], row["rejected"]
    if not prompt or prompt[-1]["role"] != "user":
        raise SystemExit("the prompt is empty, or does not end with a person's message")
    for name, answer in (("chosen", chosen), ("rejected", rejected)):
        if [message["role"] for message in answer] != ["assistant"] or not answer[0]["content"]:
            raise SystemExit(f"{name} is not one answer")


def main():
    if len(sys.argv) != 2:
        raise SystemExit("usage: load_preferences.py FILE")
    path = sys.argv[1]
    if os.path.getsize(path) == 0:
        print("the export holds no example", file=sys.stderr)
        return
    with tempfile.TemporaryDirectory() as cache:
        dataset = load_dataset("json", data_files=path, split="train", cache_dir=cache)
        # What the trainer does first: it would look for a shared beginning if there were no explicit prompt.
        before = dataset[0]["prompt"]
        dataset = dataset.map(maybe_extract_prompt, keep_in_memory=True)
        for row in dataset:
            examine(row)
        if dataset[0]["prompt"] != before:
            raise SystemExit("the prompt step changed an explicit prompt")
        print(f"{len(dataset)} examples, columns {', '.join(sorted(dataset.column_names))}", file=sys.stderr)
        print(json.dumps({name: dataset[0][name] for name in ("prompt", "chosen", "rejected")}, ensure_ascii=False))


if __name__ == "__main__":
    main()
