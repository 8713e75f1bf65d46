"""What the name of a model says about its maker, in whatever way a gateway dresses it."""

from __future__ import annotations

import re
from functools import lru_cache

MAKERS: dict[str, str] = {
    "claude": "anthropic",
    "gpt": "openai",
    "chatgpt": "openai",
    "codex": "openai",
    "o1": "openai",
    "o3": "openai",
    "o4": "openai",
    "gemini": "google",
    "gemma": "google",
    "deepseek": "deepseek",
    "qwen": "alibaba",
    "qwq": "alibaba",
    "glm": "zhipu",
    "kimi": "moonshot",
    "grok": "xai",
    "llama": "meta",
    "mistral": "mistral",
    "mixtral": "mistral",
    "ministral": "mistral",
    "magistral": "mistral",
    "devstral": "mistral",
    "codestral": "mistral",
    "minimax": "minimax",
    "nova": "amazon",
    "command": "cohere",
    "phi": "microsoft",
    "nemotron": "nvidia",
}

_WORD = re.compile(rf"(?<![a-z])({'|'.join(sorted(MAKERS, key=len, reverse=True))})(?![a-z])")


@lru_cache(maxsize=256)
def maker(model: str | None) -> str | None:
    """Who made the model; None for a name that does not say, such as a deployment's own.

    >>> maker("openrouter/anthropic/claude-sonnet-4.5"), maker("gpt-5"), maker("my-deployment")
    ('anthropic', 'openai', None)
    """
    found = _WORD.search((model or "").lower())
    return MAKERS[found[1]] if found is not None else None


def differ(one: str | None, other: str | None) -> bool:
    """Whether two things are known not to be the same; what is unknown may be."""
    return bool(one and other and one != other)
