"""The benchmark of decoding: our drafts beside Arctic's and transformers', all in one process on one corpus.

Parameters, ours and Arctic's, are chosen on the even half of every task's recordings; what is reported comes from the
odd half. What each figure means stands beside its name in config/schemas/bench.schema.yaml.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from servingbench.decoding import Method, Request, build_method
from servingbench.decoding.cost import forward_costs
from servingbench.decoding.drafts import DRAFTS, Drafter
from servingbench.decoding.drafts.suffix import SuffixDrafter
from servingbench.decoding.jit import Floats
from servingbench.decoding.loop import LoopMethod
from servingbench.decoding.target import Target
from servingbench.errors import UserError
from servingbench.peers.arctic import arctic_available
from servingbench.simulate.arms import (
    ARCTIC_SIZES,
    NODES,
    Options,
    Ours,
    best_arctic,
    logs,
    replay_corpus,
    tokens_per_forward,
    tokens_per_time,
)
from servingbench.simulate.corpus import Recording, loops
from servingbench.simulate.figures import FIGURES, PAIRED, groups, mean_log, paired_figure, scalar_figure
from servingbench.simulate.host import (
    CONTEXT_TOKENS,
    STEPS,
    arctic_index_bytes,
    drafter_costs,
    host_us,
    long_text,
    transformers_generate,
)
from servingbench.simulate.speed import BASELINE, forced_request, log_speedups, round_robin, time_arms
from servingbench.statistics.bootstrap import Resampler

Make = Callable[[], Drafter]

KINDS = ("tree", "path")
PATH_TOKENS = 16  # of a path whose proposal is timed
HOST_PROMPTS = 4  # whose steps are timed between forwards
HOST_TOKENS = 40
RESAMPLES = 10_000
SEED = 0
NOT_BUILT = "Arctic Inference is not built: make arctic"
NO_INDEX = "transformers' prompt lookup keeps no index"
NOT_IN_TRANSFORMERS = {
    "propose_us_tree": "transformers drafts no trees",
    "propose_us_path": NO_INDEX,
    "index_build_us": NO_INDEX,
    "index_append_us": NO_INDEX,
    "index_bytes_per_token": NO_INDEX,
    "host_us_per_step_tree": "transformers drafts no trees",
}
NOT_IN_ARCTIC = {"between_forwards_us": "Arctic brings drafts and no loop"}
REPLAYS = {
    "tokens_per_forward_tree": ("tree", "local"),
    "tokens_per_forward_path": ("path", "local"),
    "tokens_per_forward_tree_global": ("tree", "both"),
}


class Bench:
    """One run of the benchmark; what is finished is kept when it is interrupted.

    Args:
        recordings: the corpus.
        model: the target, on the CPU.
        eos_token_ids: what ends its outputs.
        ours: our drafters.
        cap: ``max_new_tokens``.
        timed_prompts: of each task, for the decode times; 0 leaves them out.

    Attributes:
        finished: whether everything was measured.
        settings: per figure, what each arm ran with.
    """

    def __init__(
        self,
        recordings: Sequence[Recording],
        model: Any,
        *,
        eos_token_ids: frozenset[int],
        ours: Ours,
        cap: int,
        timed_prompts: int,
    ) -> None:
        self.recordings, self.model, self.eos, self.ours = recordings, model, eos_token_ids, ours
        self.cap, self.timed_prompts = cap, timed_prompts
        self.even, self.odd = groups(recordings, half=0), groups(recordings, half=1)
        self._check()
        self.looping = [loops(recording.out[:cap]) for recording in recordings]
        self.arctic = arctic_available()
        self.finished = False
        self.settings: dict[str, dict[str, Options]] = {}
        self._logs: dict[str, dict[str, Floats]] = {}  # per prompt: figure -> arm -> logarithms
        self._numbers: dict[str, dict[str, float]] = {}  # figure -> arm -> number
        self._speedups: dict[str, Floats] = {}

    def _check(self) -> None:
        if not self.odd:
            raise UserError("the corpus needs two outputs of a task: one to tune on, one to report")
        vocabulary = self.model.config.get_text_config().vocab_size
        highest = max(max(*recording.prompt, *recording.out) for recording in self.recordings)
        if highest >= vocabulary:
            remedy = f"use the model that it was recorded with; this one has {vocabulary} tokens"
            raise UserError("the corpus holds tokens that the model does not know", value=highest, remedy=remedy)

    def run(self) -> None:
        """Measure everything, or as much as there is time for: Ctrl-C ends the run, not the report."""
        try:
            for part in (self._replay, self._draft, self._step, self._decode):
                part()
            self.finished = True
        except KeyboardInterrupt:
            pass

    def report(self) -> dict[str, Any]:
        """Figures over all outputs and over those that do not loop, the arms' speedups, every arm's settings."""
        resampler = Resampler(seed=SEED, resamples=RESAMPLES)
        halves = {"figures": self.odd, "figures_without_loops": groups(self.recordings, half=1, left_out=self.looping)}
        report: dict[str, Any] = {key: {} for key in halves}
        for name in FIGURES:
            absent = self._absent(name)
            if name not in PAIRED:
                report["figures"][name] = scalar_figure(name, self._numbers.get(name, {}), absent=absent)
                continue
            for key, chosen in halves.items():
                logs = self._logs.get(name, {})
                report[key][name] = paired_figure(name, logs, chosen, absent=absent, resampler=resampler)
        means = {arm: mean_log(values, self.odd) for arm, values in self._speedups.items()}
        report["decode_speedups"] = {arm: None if mean is None else float(np.exp(mean)) for arm, mean in means.items()}
        return {**report, "settings": self.settings}

    def _absent(self, name: str) -> dict[str, str]:
        ours = "no output is long enough" if self.finished else "the run was interrupted"
        if name.startswith("decode_speedup") and not self.timed_prompts:
            ours = "not timed (--timed-prompts 0)"
        return {
            "ours": ours,
            "arctic": NOT_IN_ARCTIC.get(name) or (ours if self.arctic else NOT_BUILT),
            "transformers": NOT_IN_TRANSFORMERS.get(name, ours),
        }

    def _lookup(self) -> Options:
        return dict(self.ours.methods["prompt_lookup"]["options"])

    def _replay(self) -> None:
        """Tokens per forward, from the recordings alone."""
        for name, (kind, source) in REPLAYS.items():
            changes: Options = {"num_tokens": NODES, "source": source}
            settings = {"ours": self.ours.options(kind, **changes), "transformers": self._lookup()}
            makes: dict[str, Make] = {
                "ours": partial(self.ours.drafter, kind, **changes),
                "transformers": partial(DRAFTS["prompt_lookup"], **self._lookup()),
            }
            if self.arctic:
                settings["arctic"] = best_arctic(
                    self.recordings, tokens_per_forward, kind=kind, source=source, cap=self.cap, chosen=self.even
                )
                makes["arctic"] = partial(DRAFTS["arctic"], **settings["arctic"])
            self.settings[name] = settings
            self._logs[name] = {
                arm: logs(replay_corpus(self.recordings, make, cap=self.cap, chosen=self.odd), tokens_per_forward)
                for arm, make in makes.items()
            }

    def _draft(self) -> None:
        """Index and proposals, behind a long text."""
        text = long_text(self.recordings)
        context = min(CONTEXT_TOKENS, len(text) - min(STEPS, len(text) // 2))
        sizes = {"tree": NODES, "path": PATH_TOKENS}
        drafters = {kind: self.ours.drafter(kind, num_tokens=size) for kind, size in sizes.items()}
        fresh = SuffixDrafter()
        fresh.start(text[:context])
        found = {"index_bytes_per_token": {"ours": fresh.local.nbytes / context}}
        if self.arctic:
            for kind, size in sizes.items():
                best = self.settings[f"tokens_per_forward_{kind}"]["arctic"]
                drafters[f"arctic_{kind}"] = DRAFTS["arctic"](**{**best, "max_spec_tokens": size})
            found["index_bytes_per_token"]["arctic"] = arctic_index_bytes(text[:context]) / context
        costs = drafter_costs(drafters, text, context=context)
        for arm, prefix in (("ours", ""), ("arctic", "arctic_"))[: 1 + self.arctic]:
            tree, path = costs[f"{prefix}tree"], costs[f"{prefix}path"]
            for name, value in (
                ("propose_us_tree", tree.propose_us),
                ("propose_us_path", path.propose_us),
                ("index_build_us", tree.build_us),
                ("index_append_us", tree.append_us),
            ):
                found.setdefault(name, {})[arm] = value
        self._numbers |= found
        self.settings["propose_us"] = {"all": {"context_tokens": context, **sizes}}

    def _step(self) -> None:
        """What lies between two forwards, in real runs."""
        places = round_robin(self.recordings, self.odd, prompts=HOST_PROMPTS)[:HOST_PROMPTS]
        target = Target(self.model)
        trees = {"ours": self.ours.drafter("tree", num_tokens=NODES)}
        if self.arctic:
            trees["arctic"] = DRAFTS["arctic"](**self.settings["tokens_per_forward_tree"]["arctic"])
        loops = {arm: LoopMethod(arm, target, drafter) for arm, drafter in trees.items()}
        plain = build_method(BASELINE, dict(self.ours.methods[BASELINE]), model=self.model)
        for loop in (*loops.values(), plain):
            loop.warm_up()
        forced = [forced_request(self.recordings[place], cap=HOST_TOKENS, eos_token_ids=self.eos) for place in places]
        free = [Request(request.prompt_ids, request.max_new_tokens, self.eos) for request in forced]
        for name, arms, requests in (
            ("host_us_per_step_tree", {arm: loop.generate for arm, loop in loops.items()}, forced),
            ("between_forwards_us", {"ours": plain.generate, "transformers": transformers_generate(self.model)}, free),
        ):
            self._numbers[name] = host_us(arms, self.model, requests, label=name)

    def _decode(self) -> None:
        """Decode times, forced replays of the recordings."""
        places = round_robin(self.recordings, self.odd, prompts=self.timed_prompts)
        if not places:
            return
        target = Target(self.model)
        costs = forward_costs(target, max_rows=1 + NODES)
        methods = self.ours.methods
        arms: dict[str, Method] = {
            name: build_method(name, dict(methods[name]), model=self.model)
            for name in (BASELINE, "prompt_lookup", "prompt_lookup_hf")
        }
        for kind in KINDS:
            settings = {"ours": self.ours.options(kind, num_tokens="cost"), "transformers": self._lookup()}
            arms[kind] = LoopMethod(kind, target, self.ours.drafter(kind, num_tokens="cost"))
            if self.arctic:
                settings["arctic"] = best_arctic(
                    self.recordings,
                    tokens_per_time(costs),
                    kind=kind,
                    sizes=ARCTIC_SIZES,
                    cap=self.cap,
                    chosen=self.even,
                )
                arms[f"arctic_{kind}"] = LoopMethod(f"arctic_{kind}", target, DRAFTS["arctic"](**settings["arctic"]))
            self.settings[f"decode_speedup_{kind}"] = settings
        for arm in arms.values():
            arm.warm_up()
        requests = {
            place: forced_request(self.recordings[place], cap=self.cap, eos_token_ids=self.eos) for place in places
        }
        times: dict[int, dict[str, int]] = {}
        try:
            for place, by_arm in time_arms(arms, requests):
                times[place] = by_arm
        finally:
            self._speedups = log_speedups(times, list(arms), recordings=len(self.recordings))
            for kind in KINDS:
                named = {"ours": kind, "arctic": f"arctic_{kind}", "transformers": "prompt_lookup"}
                found = {arm: self._speedups[name] for arm, name in named.items() if name in arms}
                self._logs[f"decode_speedup_{kind}"] = found
