"""``python -m undrift_lab``: the command `undrift-lab`."""

from .cli import main

main()
