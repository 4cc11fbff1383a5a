"""llama.cpp's OpenAI server inside this process: one GGUF file, until SIGTERM.

python xllamacpp_serve.py MODEL.gguf --port PORT [--n-ctx N] [--n-parallel N] [--n-batch N] [--n-threads N]
"""

from __future__ import annotations

import argparse
import signal


def main() -> None:
    """Parse, load, serve."""
    import xllamacpp

    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, required=True)
    for name in ("--n-ctx", "--n-parallel", "--n-batch", "--n-threads"):
        parser.add_argument(name, type=int)
    arguments = parser.parse_args()
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})  # before the server's threads exist, which inherit it
    params = xllamacpp.CommonParams()
    params.model.path = arguments.model
    params.model_alias = {arguments.model}
    params.hostnames, params.port = [arguments.host], arguments.port
    for name in ("n_ctx", "n_parallel", "n_batch"):
        if getattr(arguments, name) is not None:
            setattr(params, name, getattr(arguments, name))
    if arguments.n_threads is not None:
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = arguments.n_threads
    server = xllamacpp.Server(params)
    print(f"{xllamacpp.__name__} {xllamacpp.__version__} serves at {server.listening_address}", flush=True)
    signal.sigwait({signal.SIGTERM})


if __name__ == "__main__":
    main()
