"""`python3 -m switchyard_export`, and `python3 PATH/switchyard_export` without installing anything."""

import sys

if not __package__:
    from pathlib import Path

    sys.path[0] = str(Path(__file__).resolve().parent.parent)

from switchyard_export.command import main

sys.exit(main())
