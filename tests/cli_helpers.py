"""What the tests of `python -m tcgemm` share."""

from __future__ import annotations

from tcgemm._cli import main


def run(capsys, *arguments):
    status = main(arguments)
    return status, capsys.readouterr()


class Damaged:
    """A plan whose results are wrong in one element."""

    def __init__(self, plan):
        self._plan = plan

    def __getattr__(self, name):
        return getattr(self._plan, name)

    def execute(self, *arguments, **keywords):
        result = self._plan.execute(*arguments, **keywords)
        result[..., -1, -1] += 1000
        return result
