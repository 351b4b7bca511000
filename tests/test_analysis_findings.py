"""The answers: true to the cells, with what they rest on, in every kind of run."""

from __future__ import annotations

import random
import re
from dataclasses import replace
from itertools import combinations, permutations, product

import pytest
from fake_testbed import EMPTY, FULL, NINETY, FakeTestbed, experiment
from hypothesis import given
from hypothesis import strategies as st
from runs_made import FAST, SLOW, cells_experiment, events, few, finished, made, started

from lab.analysis import words
from lab.analysis.cells import Cell, cells
from lab.analysis.choice import choice
from lab.analysis.findings import Finding, findings
from lab.analysis.sentences import Sentence
from lab.analysis.summary import Summary, summarised
from lab.analysis.verdict import verdict
from lab.analysis.view import Use, View
from lab.events import Event, RunStarted, Standing, TrialFinished
from lab.model import DISABLED, PAIRS, Line, ProxyState, Treatment, Trial

Run = tuple[RunStarted, list[TrialFinished]]


def view_of(run: Run) -> View:
    return View(cells=cells(*run), classes=run[0].classes)


def answers(summary: Summary) -> dict[int, Finding]:
    return {finding.question: finding for finding in summary.findings}


@pytest.fixture(scope="module")
def quick() -> Summary:
    """The quick experiment on the fake testbed."""
    return summarised(events(experiment()))


def cell(summary: Summary, operation: str, state: ProxyState, line: Line = SLOW) -> Cell:
    return next(c for c in summary.cells if (c.operation, c.proxy, c.line) == (operation, state, line))


def test_quick_says_what_is_faster_and_what_that_rests_on(quick: Summary) -> None:
    full, base = cell(quick, "get", FULL), cell(quick, "get", DISABLED)
    assert full.median_s is not None
    assert base.median_s is not None
    found = answers(quick)[1]
    assert found.headline == words.times(base.median_s / full.median_s)
    assert f"Get is up to {found.headline} as fast" in found.text
    assert f"{words.duration(full.median_s)} instead of {words.duration(base.median_s)}" in found.text
    assert f"medians of 3 kept attempts, ranges {words.span(full)} and {words.span(base)}" in found.text


def test_quick_says_what_does_not_use_the_proxy(quick: Summary) -> None:
    found = answers(quick)[2]
    assert found.headline == "5 of 6"
    assert "Check-Out, Check-In and History pass through the proxy without being served" in found.text
    assert "Undo Check-Out and Diff send nothing at all" in found.text
    assert "With the proxy enabled History takes" in found.text


def test_quick_says_how_traffic_is_shared(quick: Summary) -> None:
    full = cell(quick, "get", FULL)
    assert full.served_bytes is not None
    assert full.relayed_bytes is not None
    found = answers(quick)[3]
    assert found.headline == words.share(full.served_bytes, full.served_bytes + full.relayed_bytes)
    assert (
        f"the proxy served {words.amount(full.served_bytes)} ({found.headline}) from its cache" in found.text
    )


def test_quick_says_what_rate_and_fullness_change(quick: Summary) -> None:
    slow, fast = cell(quick, "get", DISABLED), cell(quick, "get", DISABLED, FAST)
    assert answers(quick)[4].headline == words.times(words.ratio(slow.median_s or 0, fast.median_s or 0))
    assert "no difference was seen for Undo Check-Out and Diff" in answers(quick)[4].text
    assert "Get on 512/1024 kbit/s takes" in answers(quick)[5].text
    assert "With a cache 90 % full" in answers(quick)[5].text


def test_quick_has_its_finding_as_title(quick: Summary) -> None:
    assert quick.verdict == "Up to 2/4 Mbit/s a full cache pays for Get."


def test_title_names_the_line_from_which_the_proxy_stops_paying() -> None:
    run = timed({(SLOW, DISABLED): 6.0, (SLOW, FULL): 1.0, (FAST, DISABLED): 1.0, (FAST, FULL): 1.01})
    told = verdict(view_of(run))
    assert told == "Up to 512/1024 kbit/s a full cache pays for Get. From 2/4 Mbit/s on we see no difference."


def test_title_says_so_when_the_proxy_never_pays() -> None:
    run = timed({(SLOW, DISABLED): 1.0, (SLOW, FULL): 2.0})
    assert verdict(view_of(run)) == "A full cache made no operation faster on 512/1024 kbit/s."


def timed(walls: dict[tuple[Line, ProxyState], float], operation: str = "get") -> Run:
    """A run of one operation with these times, each attempt 1 ms apart."""
    lines = tuple(dict.fromkeys(line for line, _ in walls))
    states = tuple(dict.fromkeys(state for _, state in walls))
    first = started(cells_experiment(lines, [operation], states))
    return first, [
        finished(trial, walls[trial.treatment.line, trial.treatment.state] + trial.attempt / 1000)
        for trial in first.trials
    ]


def test_fullness_gives_the_share_of_the_gain() -> None:
    run = timed({(SLOW, DISABLED): 5.0, (SLOW, EMPTY): 5.2, (SLOW, NINETY): 2.0, (SLOW, FULL): 1.0})
    found = findings(view_of(run))[4]
    assert found.headline == "75 %"
    told = "With a cache 90 % full 75 % of what a full cache gains is there: Get takes 0:02.00 instead of 0:01.00."
    assert found.text.startswith(told)


def test_a_cache_that_is_partly_full_may_be_the_fastest() -> None:
    run = timed({(SLOW, DISABLED): 5.0, (SLOW, NINETY): 1.0, (SLOW, FULL): 2.0})
    found = findings(view_of(run))[4]
    assert "no difference" not in found.text
    assert found.headline == "2.0×"


def test_a_state_of_37_5_percent_is_named_so() -> None:
    run = timed({(SLOW, DISABLED): 5.0, (SLOW, ProxyState(full=37.5)): 3.0, (SLOW, FULL): 1.0})
    assert "with a cache 37.5 % full" in findings(view_of(run))[4].text


def test_operations_that_the_driver_does_not_know_are_not_spoken_of() -> None:
    first = started(
        cells_experiment([SLOW, FAST], ["get", "check-out"]), {"get": "cacheable", "check-out": "n/a"}
    )
    run = (first, [finished(trial, 1.0) for trial in first.trials])
    assert not any("Check-Out" in finding.text for finding in findings(view_of(run)))


def test_bypassed_trials_leave_the_question_open_and_say_why() -> None:
    first = started(cells_experiment(operations=["get", "history"], states=[DISABLED, FULL]))
    ended = [
        finished(
            trial,
            1.0,
            bytes=dict.fromkeys(PAIRS, 1000),
            standing=Standing.VOID
            if (trial.treatment.operation, trial.treatment.state) == ("get", FULL)
            else Standing.KEPT,
        )
        for trial in first.trials
    ]
    found = findings(view_of((first, ended)))
    assert "Of Get no trial with the proxy was kept (3 without proof)." in found[1].text
    assert found[1].headline == "1 of 1"


def test_a_cacheable_operation_that_met_an_empty_cache_only_is_not_judged() -> None:
    summary = summarised(events(experiment(states=(DISABLED, EMPTY))))
    assert "Get met an empty cache only" in answers(summary)[2].text
    assert answers(summary)[2].headline == "5 of 5"


@pytest.mark.parametrize(
    ("changes", "question", "text"),
    [
        ({"states": (DISABLED,)}, 1, "Not answered: the run has no trial with the proxy enabled."),
        (
            {"states": (FULL, NINETY)},
            1,
            "Not answered: the run has no trial without a proxy to compare with.",
        ),
        ({"lines": (SLOW,)}, 4, "Not answered: the run has one rate only, 512/1024 kbit/s"),
        ({"states": (DISABLED, FULL)}, 5, "Not answered: no operation has three kept attempts in two states"),
    ],
)
def test_what_a_run_cannot_answer_it_says(changes: dict[str, object], question: int, text: str) -> None:
    found = answers(summarised(events(experiment(**changes))))[question]
    assert found.text.startswith(text)
    assert found.headline == "—"


def test_a_run_without_any_kept_attempt_answers_nothing_and_says_why() -> None:
    asked = experiment(states=(DISABLED, FULL), operations=("get",))
    void = {trial.number: "bypassed" for trial in started(asked).trials}
    summary = summarised(events(asked, FakeTestbed(void=void, samples=1)))
    for finding in summary.findings:
        assert finding.text.startswith(
            "Not answered: the run has no kept attempt: 12 trials are without proof"
        )
    assert summary.verdict == "Not enough kept attempts to say whether the proxy pays."


@few
@given(made(), st.randoms(use_true_random=False))
def test_the_order_of_trials_does_not_change_a_word(run: Run, dice: random.Random) -> None:
    first, ended = run
    shuffled = list(ended)
    dice.shuffle(shuffled)
    assert findings(view_of((first, shuffled))) == findings(view_of(run))
    assert verdict(view_of((first, shuffled))) == verdict(view_of(run))


@few
@given(made())
def test_every_run_gets_five_answers_in_whole_sentences(run: Run) -> None:
    view = view_of(run)
    found = findings(view)
    assert [finding.question for finding in found] == [1, 2, 3, 4, 5]
    sentences = [one.text for finding in found for one in finding.sentences]
    for text in (verdict(view), *(finding.text for finding in found), *sentences):
        assert text.endswith(".")
        assert "None" not in text.replace("None: of", "")
        assert not re.search(r"nan|inf\b|  |\.\.|\(\)", text), text


@few
@given(made())
def test_no_sentence_claims_a_difference_that_no_verdict_shows(run: Run) -> None:
    view = view_of(run)
    gains, idle, *_ = findings(view)
    for name in view.operations:
        spoken = rf"(?<!Undo )\b{words.operation(name)}"
        verdicts = {each.verdict for each in view.enabled(name)}
        if re.search(rf"{spoken} (is )?up to ", gains.text):
            assert "faster" in verdicts, gains.text
        if re.search(f"{spoken} takes", f"{gains.text} {idle.text}"):
            assert "slower" in verdicts
        if "pays for" in verdict(view) and re.search(spoken, verdict(view)):
            assert "faster" in verdicts
    if not any(each.verdict == "slower" for each in view.cells):
        assert "the time with" not in gains.text + idle.text


@few
@given(made())
def test_rates_are_called_a_difference_by_the_same_rule(run: Run) -> None:
    view = view_of(run)
    moved = any(
        view.compared(fast, slow) == "faster"
        for fast, slow in permutations(view.cells, 2)
        if (fast.operation, fast.proxy) == (slow.operation, slow.proxy)
    )
    if not moved:
        assert "as fast" not in findings(view)[3].text


@few
@given(made())
def test_every_number_in_a_sentence_can_be_computed_from_the_cells(run: Run) -> None:
    view = view_of(run)
    known = numbers(view)
    told = [
        f"{finding.headline} {' '.join(one.text for one in finding.sentences)}" for finding in findings(view)
    ]
    if (money := choice(view)) is not None:
        told.append(money.text)
    for text in (verdict(view), *told):
        text = re.sub(r" \(95 %: [^)]*\)", "", text)  # those are held to SciPy's elsewhere
        for line in view.lines:
            text = text.replace(words.line(line), "")
        for number in re.findall(
            r"\d+:\d[\d:.]*\d|\d[\d.]*(?: ms| %| bytes?| kB| MB|×)|\d[\d.]*–\d[\d.]* ms", text
        ):
            parts = [part if part.endswith("ms") else f"{part} ms" for part in number.split("–")]
            assert set(parts) <= known if "–" in number else number in known, (number, text)


def numbers(view: View) -> set[str]:
    """Whatever the sentences may say, computed here anew."""
    known: set[str] = {f"{cell.proxy.full:g} %" for cell in view.cells if cell.proxy.full is not None}
    times = {n for c in view.cells for n in (c.median_s, c.low_s, c.high_s) if n is not None}
    known |= {words.duration(seconds) for seconds in times}
    medians = {c.median_s for c in view.cells if c.median_s is not None}
    rates = {line.download_bps for line in view.lines if line.download_bps}
    for pool in (medians, rates):
        known |= {words.times(a / b) for a, b in product(pool, pool) if b}
    known |= {words.share(a - b, a - c) for a, b, c in product(medians, repeat=3) if a != c}
    known |= {words.percent(abs(1 - a / b)) for a, b in product(medians, repeat=2) if b}
    known |= {words.percent(c.against.smallest) for c in view.cells if c.against and c.against.smallest}
    far: set[int] = set()
    for each in view.cells:
        parts = [each.served_bytes, each.relayed_bytes, each.direct_bytes]
        whole = sum(part or 0 for part in parts)
        known |= {words.amount(part) for part in [whole, *parts] if part is not None}
        known |= {words.share(part, whole) for part in parts if part is not None and whole}
        arrived = sum(each.bytes.get(pair) or 0 for pair in ("server>client", "server>proxy"))
        far.add(arrived)
        for two in combinations(PAIRS, 2):
            known.add(words.amount(sum(each.bytes.get(pair) or 0 for pair in two)))
    known |= {words.share(a, b) for a, b in product(far, far) if b}
    return known | {words.amount(count) for count in far}


def test_use_follows_the_bytes_that_arrived() -> None:
    uses = {
        Use.SERVED: {"bytes": {"client>proxy": 9000, "proxy>client": 9000}, "served_bytes": 5000},
        Use.PASSES: {"bytes": {"client>proxy": 9000, "proxy>server": 9000}, "served_bytes": 0},
        Use.PAST: {"bytes": {"client>server": 9000, "client>proxy": 80}, "served_bytes": 0},
        Use.SILENT: {"bytes": dict.fromkeys(PAIRS, 120), "served_bytes": 0},
        # Of a lab where nobody can count between client and proxy.
        Use.UNKNOWN: {"bytes": {"client>server": 9000, "server>client": 9000}},
    }
    for use, fields in uses.items():
        first = started(cells_experiment(states=[DISABLED, FULL]))
        ended = [finished(trial, 1.0, **fields) for trial in first.trials]
        assert view_of((first, ended)).use("get") is use


def sentences(summary: Summary) -> list[Sentence]:
    found = [one for finding in summary.findings for one in finding.sentences]
    return [*found, *([summary.choice] if summary.choice else [])]


def without(told: list[Event], cell: Treatment) -> Summary:
    """The same run as if this cell had never been planned."""
    first = told[0]
    assert isinstance(first, RunStarted)
    left = tuple(trial for trial in first.trials if trial.treatment != cell)
    numbers = {trial.number for trial in left}
    rest = [one for one in told[1:] if not isinstance(one, TrialFinished) or one.trial in numbers]
    return summarised([replace(first, trials=left), *rest])


def test_no_sentence_survives_the_loss_of_a_cell_that_it_used() -> None:
    lines = (SLOW, Line(upload_bps=1_000_000, download_bps=2_000_000), FAST)
    told = events(experiment(lines=lines))
    whole = summarised(told)
    used = {cell for one in sentences(whole) for cell in one.cells}
    assert len(used) > 60
    assert {one.rule for one in sentences(whole)} >= {
        "gain", "gain-by-line", "use", "cost", "shared", "arrived", "rate", "rate-full", "proportion", "rate-step",
        "fullness", "fullness-share", "choice",
    }  # fmt: skip
    for cell in used:
        left = {(one.rule, one.text) for one in sentences(without(told, cell))}
        for one in sentences(whole):
            if cell in one.cells:
                assert (one.rule, one.text) not in left, (cell, one)


def test_a_finding_is_its_leading_sentences(quick: Summary) -> None:
    for finding in quick.findings:
        assert finding.text == " ".join(one.text for one in finding.sentences if one.lead)
        assert [one.lead for one in finding.more] == [False] * len(finding.more)


def test_the_question_of_money_sets_the_proxy_on_the_old_line_against_a_wider_line(quick: Summary) -> None:
    here, base = cell(quick, "get", FULL), cell(quick, "get", DISABLED)
    wider = cell(quick, "get", DISABLED, FAST)
    assert quick.choice is not None
    assert quick.choice.text.startswith(
        f"Proxy or wider line: Get takes {words.duration(here.median_s or 0)} on 512/1024 kbit/s with a full cache "
        f"({words.duration(base.median_s or 0)} without a proxy), against {words.duration(wider.median_s or 0)} on "
        f"2/4 Mbit/s without one (the proxy is "
    )
    assert "; Check-Out, Check-In and History gain by a wider line only (" in quick.choice.text
    assert "medians of 3 kept attempts; 1 wider line" in quick.choice.text
    assert summarised(events(experiment(lines=(SLOW,)))).choice is None
    assert summarised(events(experiment(states=(DISABLED,)))).choice is None


def test_what_is_one_of_many_comparisons_is_corrected_for_their_number() -> None:
    """By itself each of three states is faster, just so; as one of them none is clear."""
    states = [DISABLED, EMPTY, NINETY, FULL]
    first = started(cells_experiment(states=states))
    jitter = {1: -0.035, 2: 0.0, 3: 0.035}
    ended = [
        finished(
            trial,
            (10.0 if trial.treatment.state == DISABLED else 9.28) + 10 * jitter[trial.attempt],
        )
        for trial in first.trials
    ]
    view = view_of((first, ended))
    assert [one.verdict for one in view.enabled("get")] == ["faster"] * 3
    assert [one.verdict for one in view.corrected().enabled("get")] == ["no-difference"] * 3
    assert findings(view)[0].text.startswith("None: of 3 cells with the proxy none was faster")


def test_a_bypassed_proxy_one_attempt_and_all_failed_claim_nothing() -> None:
    asked = experiment()
    plan = started(asked).trials
    bypassed = {t.number: "bypassed" for t in plan if t.treatment.state.enabled}
    failed = {t.number: "no" for t in plan}
    for told in (
        events(asked, FakeTestbed(void=bypassed, samples=1)),
        events(asked, FakeTestbed(failing=failed, samples=1)),
        events(experiment(attempts=2, warm_up=1)),
    ):
        summary = summarised(told)
        assert not {one.verdict for one in summary.cells} & {"faster", "slower", "no-difference"}
        assert summary.verdict == "Not enough kept attempts to say whether the proxy pays."
        assert not re.search("up to|pays|slower than none", " ".join(one.text for one in sentences(summary)))
        assert summary.choice is None


def test_a_break_even_is_said_with_the_lines_between_which_it_lies() -> None:
    rates = (250_000, 500_000, 1_000_000, 2_000_000, 4_000_000, 8_000_000)
    lines = [Line(upload_bps=rate // 2, download_bps=rate) for rate in rates]
    first = started(cells_experiment(lines, states=[DISABLED, FULL]))

    def seconds(trial: Trial) -> float:
        rate = trial.treatment.line.download_bps or 1
        fixed, volume = (20.0, 0.4e6) if trial.treatment.state == FULL else (1.0, 4e6)
        wobble = 1 + 0.004 * (trial.treatment.line.upload_bps == 1_000_000) + trial.attempt / 10_000
        return (fixed + 8 * volume / rate) * wobble

    view = view_of((first, [finished(trial, seconds(trial)) for trial in first.trials]))
    (told,) = [one for one in findings(view)[0].sentences if one.rule == "break-even"]
    assert re.match(
        r"With a full cache and without one Get takes the same time at about 1\.5 Mbit/s", told.text
    )
    assert "between 500/1000 kbit/s and 1/2 Mbit/s (a model of 6 lines)" in told.text
    assert len(told.cells) == 12


def test_upload_and_download_are_told_apart_where_both_were_varied() -> None:
    rates = [(100, 200), (200, 200), (200, 400), (400, 400), (400, 1600), (1600, 1600)]
    lines = [Line(upload_bps=1000 * up, download_bps=1000 * down) for up, down in rates]
    first = started(cells_experiment(lines, states=[DISABLED]))

    def seconds(trial: Trial) -> float:
        line = trial.treatment.line
        return (
            1 + 8 * 3e6 / (line.download_bps or 1) + 8 * 1e6 / (line.upload_bps or 1) + trial.attempt / 1000
        )

    told = findings(view_of((first, [finished(trial, seconds(trial)) for trial in first.trials])))[3]
    (one,) = [sentence for sentence in told.sentences if sentence.rule == "directions"]
    assert "fit 3.0 MB down and 1.0 MB up (a model of 6 lines, residual " in one.text
