"""Every figure in every situation: it renders, and what it draws equals the records."""

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from tests.fixtures import figure_inputs as inputs

from servingbench.config.experiment import load_suite
from servingbench.errors import UserError
from servingbench.figures import registry
from servingbench.figures.data import ResultSet, geometric_mean, load_results
from servingbench.figures.draft_ablation import STEPS
from servingbench.figures.names import FIGURE_NAMES
from servingbench.figures.position_profile import LEAST, pooled_reach
from servingbench.figures.reported_numbers import load_reported
from servingbench.figures.save import save_figure
from servingbench.figures.source_ablation import ablation_arms
from servingbench.figures.speedup import ratio_ticks
from servingbench.figures.style import LOOKS, SPARE_LOOKS, ink, look

REPORTED = load_reported(inputs.ROOT / "config" / "reported")
SITUATIONS = {
    "one workload": lambda: inputs.results(1),
    "four workloads": lambda: inputs.results(4, status={("draft_speculative", "chat"): "not_lossless"}),
    "ten workloads, all methods": lambda: inputs.results(10, inputs.ALL_METHODS),
    "too few prompts": lambda: inputs.results(4, n=2),
    "one method": lambda: inputs.results(2, ("autoregressive", "prompt_lookup")),
    "baseline alone": lambda: inputs.results(2, ("autoregressive",)),
    "summaries missing": lambda: inputs.results(2, skip=[("code-editing", "tree_speculative")]),
    "failed": lambda: inputs.results(2, status={("tree_speculative", "overall"): "failed"}),
}


def artists(figure: Figure, prefix: str) -> Iterator[tuple[str, Line2D]]:
    for axes in figure.axes:
        for line in axes.lines:
            if (gid := line.get_gid() or "").startswith(prefix):
                yield gid.removeprefix(prefix), line


def texts(figure: Figure) -> str:
    own = [text.get_text() for text in figure.texts]
    return "\n".join(own + [text.get_text() for axes in figure.axes for text in axes.texts])


@pytest.mark.parametrize("situation", SITUATIONS)
@pytest.mark.parametrize("name", registry.FIGURES)
def test_renders(name: str, situation: str) -> None:
    figure = registry.draw(name, replace(SITUATIONS[situation](), reported=REPORTED))
    figure.canvas.draw()
    assert figure.texts


def test_every_figure_module_is_registered() -> None:
    folder = Path(registry.__file__).parent
    support = {
        "__init__",
        "data",
        "manifest",
        "names",
        "panel",
        "registry",
        "reported",
        "reported_numbers",
        "revisions",
        "save",
        "serve_matrix",
        "style",
        "tree_step",
    }
    own = {path.stem for path in folder.glob("*.py")} - support
    assert own | {"reported_speedup", "reported_source_ablation"} == set(registry.FIGURES)


def test_the_workflow_knows_every_figure() -> None:
    assert tuple(registry.FIGURES) == FIGURE_NAMES


def test_every_figure_has_a_caption() -> None:
    captions = (inputs.ROOT / "docs" / "captions" / "figure.rst").read_text()
    for name in registry.FIGURES:
        assert f"snakemake.wildcards.figure == '{name}'" in captions, name


def test_unknown_figure_is_a_user_error() -> None:
    with pytest.raises(UserError, match="Did you mean 'speedup'"):
        registry.draw("spedup", inputs.results(1))


def test_speedup_draws_the_statistics() -> None:
    results = inputs.results(4, status={("draft_speculative", "chat"): "not_lossless"})
    figure = registry.draw("speedup", results)
    points, intervals = dict(artists(figure, "point/")), dict(artists(figure, "ci/"))
    ok = {
        (r["scope"], r["method"]): r
        for r in results.statistics["comparisons"]
        if r["status"] == "ok" and r["method"] != results.aa
    }
    assert set(points) == {f"{scope}/{method}" for scope, method in ok}
    for (scope, method), row in ok.items():
        assert points[f"{scope}/{method}"].get_xdata()[0] == row["speedup"]
        assert list(intervals[f"{scope}/{method}"].get_xdata()) == pytest.approx(row["ci"])
        assert points[f"{scope}/{method}"].get_color() == look(method).color
    bands = {patch.get_gid(): patch for axes in figure.axes for patch in axes.patches if patch.get_gid()}
    low, high = results.comparison("autoregressive_aa", "overall")["ci"]
    band = bands["band/overall"]
    assert (band.get_x(), band.get_x() + band.get_width()) == pytest.approx((low, high))
    assert texts(figure).count("not lossless") == 1


def test_speedup_clips_a_wild_interval_to_the_axis() -> None:
    results = inputs.results(1)
    row = results.comparison("tree_speculative", "code-editing")
    row["ci"] = [row["speedup"] / 100, row["speedup"] * 100]
    figure = registry.draw("speedup", results)
    drawn = dict(artists(figure, "ci/"))["code-editing/tree_speculative"].get_xdata()
    assert list(drawn) == pytest.approx(figure.axes[0].get_xlim())
    assert max(drawn) < row["ci"][1]


@pytest.mark.parametrize(("figure_name", "metric"), [("tokens_per_forward", "tokens_per_forward")])
def test_rows_draw_the_summaries(figure_name: str, metric: str) -> None:
    results = inputs.results(3)
    drawn = dict(artists(registry.draw(figure_name, results), "point/"))
    assert len(drawn) == 3 * 4
    for key, line in drawn.items():
        assert line.get_xdata()[0] == results.metric(*key.split("/"), metric)


@pytest.mark.parametrize(
    ("name", "x", "y"),
    [
        ("proposed_accepted", "proposed_per_step", "accepted_per_step"),
        ("throughput_memory", "peak_memory_mib", "overall_tokens_per_second"),
    ],
)
def test_scatter_draws_the_summaries(name: str, x: str, y: str) -> None:
    results = inputs.results(3)
    drawn = dict(artists(registry.draw(name, results), "point/"))
    assert len(drawn) == 3 * (5 if name == "throughput_memory" else 4)
    for key, line in drawn.items():
        pair = (line.get_xdata()[0], line.get_ydata()[0])
        assert pair == (results.metric(*key.split("/"), x), results.metric(*key.split("/"), y))


def test_position_profile_pools_by_counts_and_stops_at_few() -> None:
    results = inputs.results(2, ("autoregressive", "prompt_lookup"))
    profiles = {"code-editing": ([0.5, 0.2], [30, 10]), "code-generation": ([1.0, 0.5, 0.5], [10, 10, LEAST - 1])}
    for workload, (reach, count) in profiles.items():
        results.summaries[workload, "prompt_lookup"]["metrics"]["position_profile"] = {
            "reach": reach,
            "conditional": [],
            "count": count,
        }
    assert pooled_reach(results, "prompt_lookup") == pytest.approx([25 / 40, 7 / 20])
    line = dict(artists(registry.draw("position_profile", results), "line/"))["prompt_lookup"]
    assert list(line.get_ydata()) == pytest.approx([25 / 40, 7 / 20])


def test_source_ablation_finds_methods_that_differ_by_source_alone() -> None:
    assert ablation_arms(inputs.results(1)) == {}
    results = inputs.results(2, (*inputs.DEFAULT_METHODS, "suffix_both", "suffix_global"))
    arms = ablation_arms(results)
    assert arms == {"local": "suffix_speculative", "global": "suffix_global", "both": "suffix_both"}
    drawn = dict(artists(registry.draw("source_ablation", results), "point/"))
    assert drawn["overall/suffix_both"].get_xdata()[0] == results.comparison("suffix_both", "overall")["speedup"]


def test_draft_ablation_draws_its_steps_in_order_with_their_gains() -> None:
    results = inputs.results(3, ("autoregressive", "autoregressive_aa", *inputs.TREE_STEPS))
    figure = registry.draw("draft_ablation", results)
    means, intervals = dict(artists(figure, "mean/")), dict(artists(figure, "ci/overall/"))
    assert tuple(means) == tuple(intervals) == inputs.TREE_STEPS
    assert sorted(line.get_ydata()[0] for line in means.values()) == [line.get_ydata()[0] for line in means.values()]
    for step, line in means.items():
        values = [results.metric(workload, step, "tokens_per_forward") for workload in results.workloads]
        assert line.get_xdata()[0] == geometric_mean(values)
        assert list(intervals[step].get_xdata()) == results.comparison(step, "overall")["ci"]
    assert len(dict(artists(figure, "tokens/"))) == 3 * 5
    shown = texts(figure)
    assert all(f"{row['speedup']:.2f}" in shown for row in results.statistics["contrasts"])
    assert "all steps" in shown
    assert "up to 64 nodes" in shown


def test_draft_ablation_without_its_steps_names_the_suite() -> None:
    assert "config/suites/draft-ablation.yaml" in texts(registry.draw("draft_ablation", inputs.results(2)))


def test_the_ablations_suite_runs_the_steps_that_its_figure_draws() -> None:
    suite = load_suite(inputs.ROOT / "config", inputs.ROOT / "config" / "suites" / "draft-ablation.yaml")
    assert [name for name in suite.methods if name in STEPS] == list(STEPS) == list(inputs.TREE_STEPS)
    each = [[step, before] for before, step in pairwise(STEPS)]
    assert suite.statistics["contrasts"] == [["tree_speculative", "tree_published"], *each]


def test_reported_figures_draw_the_csv_and_say_so() -> None:
    results = replace(inputs.results(1), reported=REPORTED)
    figure = registry.draw("reported_speedup", results)
    drawn = {key: line.get_xdata()[0] for key, line in artists(figure, "point/")}
    assert drawn["h100-2026-09/canitedit/tree"] == next(
        n.value for n in REPORTED if (n.workload, n.method, n.gpu) == ("canitedit", "tree", "H100")
    )
    for name in ("reported_speedup", "reported_source_ablation"):
        assert "Reported, not measured by this pipeline" in texts(registry.draw(name, results)).replace("\n", " ")


def test_no_colour_and_no_pair_of_colour_and_marker_twice() -> None:
    colors = [style.color.lower() for style in (*LOOKS.values(), *SPARE_LOOKS)]
    assert len(set(colors)) == len(colors)
    table = [*inputs.ALL_METHODS, *(f"added_{i}" for i in range(20))]
    assert len({look(name, table).color for name in table}) == len(table)


def test_every_method_of_the_table_has_a_look_of_its_own() -> None:
    assert set(inputs.ALL_METHODS) <= set(LOOKS)


def test_ink_is_readable_on_white() -> None:
    assert ink("#ffffff") < "#808080"
    assert ink("#000000") == "#000000"


def test_ratio_ticks_are_round_few_and_hold_one() -> None:
    assert ratio_ticks(0.5, 8.5) == [0.5, 1.0, 2.0, 4.0, 8.0]
    assert ratio_ticks(0.95, 1.02) == [1.0]


def test_same_bytes_in_another_process(tmp_path: Path) -> None:
    paths = inputs.write(tmp_path / "results", inputs.results(2))
    written: list[dict[str, bytes]] = []
    for number, seed in enumerate(("1", "2")):
        stem = tmp_path / str(number) / "speedup"
        command = [
            sys.executable,
            str(inputs.ROOT / "workflow_scripts" / "plot.py"),
            "speedup",
            "--statistics",
            str(paths["statistics"]),
            "--methods-table",
            str(inputs.METHODS_TABLE),
            "--workloads-table",
            str(tmp_path / "none.yaml"),
            "--out-stem",
            str(stem),
        ]
        subprocess.run(
            command, check=True, env={"PYTHONHASHSEED": seed, "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
        )
        written.append({path.suffix: path.read_bytes() for path in stem.parent.iterdir()})
    assert set(written[0]) == {".svg", ".pdf", ".png"}
    assert written[0] == written[1]


def test_save_leaves_no_date(tmp_path: Path) -> None:
    svg, pdf, _ = save_figure(registry.draw("speedup", inputs.results(1)), tmp_path / "x")
    assert "dc:date" not in svg.read_text()
    assert b"CreationDate" not in pdf.read_bytes()


def test_load_results_refuses_a_summary_of_another_key(tmp_path: Path) -> None:
    data = inputs.results(1)
    next(iter(data.summaries.values()))["key"]["seed"] = 3
    paths = inputs.write(tmp_path, data)
    with pytest.raises(UserError, match=r"summary\.json: key\.seed: belongs to another run"):
        load_results(paths["statistics"], methods_table=inputs.METHODS_TABLE)


def test_footer_names_machine_n_and_limit() -> None:
    footer = inputs.results(2).footer
    for part in ("Example CPU @ 2.60GHz", "5.24.0", "n = 12", "limit 12", "forced"):
        assert part in footer


def test_load_results_reads_what_was_written(tmp_path: Path) -> None:
    data = inputs.results(2)
    paths = inputs.write(tmp_path, data)
    loaded: ResultSet = load_results(
        paths["statistics"],
        methods_table=inputs.METHODS_TABLE,
        reported=inputs.ROOT / "config" / "reported",
    )
    assert (loaded.statistics, dict(loaded.summaries), dict(loaded.lossless)) == (
        data.statistics,
        data.summaries,
        data.lossless,
    )
    assert list(loaded.reported) == REPORTED
