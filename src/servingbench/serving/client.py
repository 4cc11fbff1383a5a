"""The few HTTP requests that the row itself makes of a server, with the standard library."""

from __future__ import annotations

import http.client
import json
import socket
import urllib.error
import urllib.request
from typing import Any

PROMPT = "What is 12 plus 30? End with a line that says ANSWER: and the number."


def free_port(host: str, wanted: int | None = None) -> int | None:
    """``wanted``, or any port that nobody listens on; None when ``wanted`` is taken."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, wanted or 0))
        except OSError:
            return None
        return int(probe.getsockname()[1])


def get(url: str, *, timeout_s: float) -> tuple[int, str]:
    """(HTTP status, body); status 0 when nobody answered."""
    return _answer(urllib.request.Request(url), timeout_s)


def chat(url: str, model: str, *, temperature: float, max_tokens: int, timeout_s: float) -> tuple[int, str]:
    """Ask for one chat completion with the evaluation's sampling.

    Returns:
        (HTTP status, the completion's text, or the body of an answer that holds none); status 0 without an answer.
    """
    messages = [{"role": "user", "content": PROMPT}]
    body = {"model": model, "messages": messages, "temperature": temperature, "max_tokens": max_tokens}
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(f"{url}/v1/chat/completions", json.dumps(body).encode(), headers)
    status, text = _answer(request, timeout_s)
    if status != 200:
        return status, text
    try:
        answer: dict[str, Any] = json.loads(text)
        return status, str(answer["choices"][0]["message"]["content"])
    except (ValueError, LookupError, TypeError):
        return 0, text


def _answer(request: urllib.request.Request, timeout_s: float) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(request, timeout=timeout_s) as response:
            return response.status, response.read().decode(errors="replace")
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode(errors="replace")
    except (OSError, http.client.HTTPException) as error:
        return 0, str(error)
