"""`python -m brute` is `brute`."""

from __future__ import annotations

from brute.cli import main

if __name__ == "__main__":
    main()
