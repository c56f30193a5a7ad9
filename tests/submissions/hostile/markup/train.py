"""Speaks in markup and terminal codes, wherever somebody may read it."""

import os

from cifar import cli

NASTY = "[bold green]PASSED[/] 100 of 100 <script>alert('owned')</script> \x1b[2J\x1b[31m\x1b]0;owned\x07 \u202e\u0000"

args = cli.parse(__doc__, epochs=8, batch_size=128, lr=0.1)
print(NASTY)
if os.environ["HOROVOD_RANK"] == "0":
    (args.output_dir / "metrics.jsonl").write_text(f'{{"epoch": 1, "{NASTY}": "{NASTY}"}}\n')
    (args.output_dir / f"{NASTY[:40].replace('/', '')}".replace("\0", "")).write_text(NASTY)
raise ValueError(NASTY)
