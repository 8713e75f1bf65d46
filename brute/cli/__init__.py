"""The command line, `brute`: look into a log, bring sessions in and out, see the demo."""

from __future__ import annotations

from brute.cli.app import app


def main() -> None:
    """Run the command line on `sys.argv`, and exit."""
    app.main(prog_name="brute")
