"""docs/revisions.md, followed word for word."""

from __future__ import annotations

from tests.workflow.conftest import Clone
from tests.workflow.test_dry_run import job_counts


def test_following_the_page_adds_a_revision(clone: Clone) -> None:
    done = clone.follow("docs/revisions.md")
    assert "v5.13.0" in done.stdout
    counts = job_counts(done.stdout)
    assert counts["generate"] == counts["compare"] == 2
    assert counts["compare_revisions"] == counts["plot_revisions"] == 1


def test_a_working_folder_that_is_none_is_one_line(clone: Clone) -> None:
    row = {
        "label": "mine",
        "source": "path",
        "path": "nowhere",
        "version": "5.24.0",
        "environment": "transformers-5.24",
    }
    clone.edit("revisions", lambda rows: rows.update(mine=row))
    done = clone.snakemake("-n", "--config", "revisions=[mine]", "--", "figures/all", check=False)
    assert done.returncode != 0
    assert "error: config/revisions.yaml: mine.path: no git repository" in done.stderr
    assert "Traceback" not in done.stderr
