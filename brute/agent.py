"""`brute.Agent`: the common loop as an agent function."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, cast

from brute.effects import AnyRun, AsyncRun, Run
from brute.prompt import Hook
from brute.replies import Reply, TurnLimit
from brute.session import Session
from brute.tools import Tool
from brute.turn import check_run


class Agent:
    """Asks a model, runs the tools it asks for, and asks again, until it has nothing to run.

    It is an agent function: call it with a session, or hand it to `brute.record`.

        agent = brute.Agent(run=claude, tools=[search], system="You plan trips.")
        reply = agent(log.start(), "Three days in Kyoto?")

    Called without a prompt it goes on where the session stands: calls that are open are run
    first. A reply that the provider only paused goes back to it. With an async run function it is
    async: `await agent(session, prompt)`.
    """

    def __init__(
        self,
        run: AnyRun[object],
        tools: Iterable[Tool] = (),
        *,
        system: str | None = None,
        max_turns: int = 50,
        hooks: Sequence[Hook] = (),
        name: str = "agent",
        **settings: Any,
    ) -> None:
        """The settings are those of `Session.turn` (`model=`, `max_tokens=`, …).

        max_turns: requests for one prompt; `TurnLimit` is raised when they are used up.
        """
        check_run(run)
        self.run, self.tools, self.system = run, list(tools), system
        self.max_turns, self.hooks, self.settings = max_turns, list(hooks), settings
        self.__name__ = name
        self.is_async = run.is_async

    def __call__(self, session: Session, prompt: str | None = None) -> Any:
        """Say the prompt and work until the model has nothing more to run; the last `Reply`."""
        return self._work_async(session, prompt) if self.is_async else self._work(session, prompt)

    def _work(self, session: Session, prompt: str | None) -> Reply:
        self._open(session, prompt)
        if prompt is None:
            session.run_calls(tools=self.tools)
        for _ in range(self.max_turns):
            reply = session.complete(cast("Run[object]", self.run), **self._settings)
            if _is_last(reply):
                return reply
            session.run_calls(reply)
        raise TurnLimit(session.id, self.max_turns)

    async def _work_async(self, session: Session, prompt: str | None) -> Reply:
        self._open(session, prompt)
        if prompt is None:
            await session.run_calls(tools=self.tools, is_async=True)
        for _ in range(self.max_turns):
            reply = await session.complete(cast("AsyncRun[object]", self.run), **self._settings)
            if _is_last(reply):
                return reply
            await session.run_calls(reply)
        raise TurnLimit(session.id, self.max_turns)

    @property
    def _settings(self) -> dict[str, Any]:
        given: dict[str, Any] = {**self.settings, "hooks": self.hooks}
        if self.tools:
            given["tools"] = self.tools
        return given

    def _open(self, session: Session, prompt: str | None) -> None:
        if self.system is not None and not any(m.role == "system" for m in session.messages):
            session.system(self.system)
        if prompt is not None:
            session.user(prompt)


def _is_last(reply: Reply) -> bool:
    """Whether nothing is left to do: a paused reply goes back as it is, and the model goes on."""
    return not reply.calls and reply.finish != "pause"
