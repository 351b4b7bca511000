"""The command line: the same engine as the window, and a promise of names and exit codes to scripts."""

from __future__ import annotations

import io
import json
import logging
import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lab import settings
from lab.cli import signals
from lab.cli.parts import Parts
from lab.cli.plain import plain
from lab.cli.trouble import DONE, HOST_TROUBLE, Troubled
from lab.errors import BadInput, HostLacks

if TYPE_CHECKING:
    from lab.model import Experiment
    from lab.profile import Profile

DEMO = "Proxy efficiency (quick)"
"""The experiment of `demo`, by its name in the profile that the embedded lab writes."""

parts_given = click.make_pass_decorator(Parts, ensure=True)
profile_argument = click.argument("profile_path", metavar="PROFILE", type=click.Path(dir_okay=False))
run_argument = click.argument("run_name", metavar="RUN")
as_json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON, and nothing else.")
headless_option = click.option(
    "--headless", is_flag=True, help="Stay in the terminal, also where a window could be shown."
)
experiment_option = click.option(
    "--experiment",
    "experiment_name",
    metavar="NAME",
    help="Which of the profile's experiments (default: the first).",
)

agree_option = click.option(
    "--agree",
    "agreed",
    metavar="KINDS",
    help="What this may do to other people's work, said beforehand, as for `run`; `nothing`: only if nothing"
    " has to be asked.",
)


@click.group(
    cls=Troubled, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]}
)
@click.version_option(package_name="branchlab")
@click.pass_context
def cli(context: click.Context) -> None:
    """Measure whether a branch office needs a caching proxy, a wider line, or neither.

    Without a command the window is opened. RUN is a run's id, the beginning of one, a run file, or `last`.

    Exit codes: 0 done; 1 some trials failed or a cell has no kept attempt; 2 bad input, or nobody agreed; 3 a
    host is missing something or out of reach; 130 interrupted.
    """
    if context.invoked_subcommand is not None:
        settings.load()  # a wrong file is told before anything is done; the window tells it itself
    else:
        parts = context.ensure_object(Parts)
        if not parts.display_there():
            raise HostLacks(
                "there is no display to open a window on",
                advice="Work in the terminal (`branchlab --help` lists the commands), or set DISPLAY.",
            )
        open_window = parts.window()
        with signals.as_usual():
            code = open_window() or DONE
        context.exit(code)


@cli.command()
@headless_option
@parts_given
def demo(parts: Parts, headless: bool) -> None:
    """Make a lab on this machine, run the quick experiment in it, show its answers, take the lab down."""
    with parts.tied_lab() as path:
        # The window's own code, if it has one, is the demo's.
        code = _run(parts, str(path), DEMO, headless=headless)
    sys.exit(code)


@cli.command()
@profile_argument
@click.option(
    "--experiment", "experiment_name", metavar="NAME", help="Only this one (default: all of the profile's)."
)
@click.option("--sudoers", is_flag=True, help="Print, per host, what an administrator allows once.")
@click.option("--requirements", is_flag=True, help="Print, per host, packages, ports, rights and every file.")
@parts_given
def check(
    parts: Parts, profile_path: str, experiment_name: str | None, sudoers: bool, requirements: bool
) -> None:
    """Look at the hosts of a profile: what a run would need, and what is missing. Changes nothing."""
    profile = _loaded(profile_path)
    if sudoers or requirements:
        told = parts.sudoers(profile.lab) if sudoers else parts.requirements(profile.lab, profile.experiments)
        click.echo(
            "\n\n".join("\n".join([f"On {one.host}:", *(f"  {text}" for text in one.lines)]) for one in told)
        )
        sys.exit(DONE if all(one.ok for one in told) else HOST_TROUBLE)
    experiments = [_chosen(profile, experiment_name)] if experiment_name else list(profile.experiments)
    for experiment in experiments:
        _planned(experiment)
    found = parts.check(profile.lab, experiments)
    for one in found:
        click.echo(f"{one.grade:<7}  {one.host}: {plain(one.text)}")
        if one.advice:
            click.echo(f"           what to do: {plain(one.advice)}")
        if one.command:
            click.echo(f"           {plain(one.command)}")
    wrong = sum(not one.ok for one in found)
    from lab import asking

    asks = [one.asks for one in found if one.asks]
    said = f"{wrong} of {len(found)} are not as a run needs them" if wrong else "everything is there"
    click.echo(said + (f"; a run would ask: {asking.flag(asks)}" if asks else ""))
    sys.exit(HOST_TROUBLE if wrong else DONE)


@cli.command()
@profile_argument
@experiment_option
@click.option(
    "--changes",
    is_flag=True,
    help="Print instead, for a change board, what is changed on each host and how it ends (Markdown).",
)
@parts_given
def plan(parts: Parts, profile_path: str, experiment_name: str | None, changes: bool) -> None:
    """Print the trials, the commands on each host and how long it will take. Changes nothing."""
    from lab import units
    from lab.analysis import forecast
    from lab.cli import tables

    profile = _loaded(profile_path)
    experiment = _chosen(profile, experiment_name)
    trials = _planned(experiment)
    known = forecast.forecast(experiment, forecast.basis(experiment))
    duration = f"{units.coming_text(known.low_s, known.high_s)} ({known.basis})" if known else ""
    if changes:
        click.echo(parts.changes(profile.lab, experiment, duration), nl=False)
        return
    click.echo(f"{experiment.name}: {len(trials)} trials, order {experiment.order}, seed {experiment.seed}\n")
    width = len(str(len(trials)))
    for trial in trials:
        treatment = trial.treatment
        kind = "  warm-up, not counted" if trial.warm_up else "  for its traffic only" if trial.launch else ""
        name = tables.trial_words(treatment.operation, treatment.state, treatment.line)
        click.echo(f"{trial.number:>{width}}  block {trial.block}  {name}, attempt {trial.attempt}{kind}")
    click.echo()
    told = parts.commands(profile.lab, experiment)
    if experiment.at_once > 1:
        names = ", ".join(host.name for host in profile.lab.taking_part(experiment))
        click.echo(
            f"At the same moment on {names}, timed from the first one's start to the last one's end.\n"
        )
    for host, commands in told.items():
        click.echo(f"On {host}:")
        for command in commands:
            click.echo(f"  {command if isinstance(command, str) else shlex.join(command)}")
    click.echo()
    unknown = "not known, since nothing of this experiment was measured yet"
    click.echo(f"Duration: {duration or unknown}.")


@cli.command()
@profile_argument
@experiment_option
@headless_option
@click.option(
    "--agree",
    "agreed",
    metavar="KINDS",
    help="What this run may do to other people's work, said beforehand: connections (limit the line although"
    " others have some), purge (take their objects out of the cache), qdisc (replace a queue that somebody set"
    " up, and put it back). With commas between them; `nothing` alone: run only if nothing has to be asked.",
)
@click.option(
    "--rehearse",
    is_flag=True,
    help="Only one shortest trial of each kind, in the terminal; then everything is taken back and looked for.",
)
@click.option(
    "--repeat",
    "repeated",
    metavar="RUN",
    help="Do again, in the terminal, what failed, has no proof or was not reached in this run, and add it to its file.",
)
@parts_given
def run(
    parts: Parts,
    profile_path: str,
    experiment_name: str | None,
    headless: bool,
    agreed: str | None,
    rehearse: bool,
    repeated: str | None,
) -> None:
    """Run an experiment of a profile: in the window where a display exists, else in the terminal.

    What would touch other people's work is asked first; with --agree nobody is asked. Ctrl-C stops a run: the
    trials that are finished stay, and the hosts are taken back.
    """
    kinds = _kinds(agreed)
    if repeated and rehearse:
        raise BadInput("--repeat and --rehearse are two different things", advice="Write one of them.")
    code = _run(
        parts, profile_path, experiment_name,
        headless=headless, agreed=kinds, rehearse=rehearse, repeated=repeated,
    )  # fmt: skip
    sys.exit(code)


@cli.command()
@as_json_option
def runs(as_json: bool) -> None:
    """List the runs of this machine, newest first."""
    from lab import store
    from lab.cli import tables

    heads = store.runs()
    if as_json:
        _print_json(
            [
                {
                    "run": head.run,
                    "experiment": head.experiment,
                    "outcome": str(head.outcome),
                    "started": head.started,
                    "file": str(head.file),
                }
                for head in heads
            ]
        )
    elif heads:
        tables.console().print(tables.runs(heads))
    else:
        click.echo(f"no runs yet in {store.runs_folder()}")


@cli.command()
@run_argument
@as_json_option
@click.option(
    "--base",
    "base",
    metavar="STATE",
    default="disabled",
    help="Hold the other states against this one (disabled; or for example 0 %).",
)
@click.option(
    "--exclude",
    "left_out",
    nargs=2,
    type=(int, str),
    metavar="TRIAL REASON",
    multiple=True,
    help="Leave a trial out of the figures; the reason is kept in the run file, and shown.",
)
@click.option(
    "--include", "taken_back", type=int, metavar="TRIAL", multiple=True, help="Take it back into the figures."
)
def show(
    run_name: str,
    as_json: bool,
    base: str,
    left_out: tuple[tuple[int, str], ...],
    taken_back: tuple[int, ...],
) -> None:
    """Show a run: its tables, and the answers.

    `published-2008` shows the published figures of the 2008 test in the same way; `bazaar-2008`, `sync-2013` and
    `files-2011` those of three other sources, before and after.
    """
    from lab import units
    from lab.cli import showing, tables

    found = showing.shown(run_name, base=units.parse_state(base), left_out=left_out, taken_back=taken_back)
    if as_json:
        _print_json(found.json())
    else:
        found.report(tables.console())


@cli.command()
@click.argument("first", metavar="RUN")
@click.argument("others", metavar="RUN...", nargs=-1, required=True)
@as_json_option
def compare(first: str, others: tuple[str, ...], as_json: bool) -> None:
    """Hold runs against the first one: what became faster or slower, cell by cell, and what differs in the labs.

    Published figures (`published-2008`) may be one of them. Where the first run did not measure a line, its model
    of the line foretells the times, and says whether they came true.
    """
    from lab.cli import comparing, tables

    found = [comparing.compared(first, other) for other in others]
    if as_json:
        _print_json([comparing.as_json(one) for one in found])
        return
    out = tables.console()
    for number, one in enumerate(found):
        if number:
            out.print()
        comparing.report(one, out)


@cli.command()
@run_argument
@click.option(
    "--inputs", "file", metavar="FILE.toml", help="Prices, people, how often; left out: assumed, and printed."
)
@as_json_option
def decide(run_name: str, file: str | None, as_json: bool) -> None:
    """What each option (a line, with or without a proxy) costs a month in time and money."""
    from lab.cli import decision, showing, tables

    seen = showing.summary(run_name)
    found = decision.decided(seen, decision.given(file, seen))
    if as_json:
        _print_json(decision.as_json(found))
    else:
        decision.report(found, tables.console(), assumed=file is None)


@cli.command()
@run_argument
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path(dir_okay=False))
@click.option("--figures", metavar="KEYS", default="", help="Which figures (get-line,bars), or `all`.")
@click.option("--template", metavar="FILE", help="A company's .pptx or .potx for slides.")
@click.option("--size", metavar="W:H", help="Of slides without a template: 16:9 (default) or 4:3.")
@click.option("--decimal-comma", is_flag=True, help="CSV for spreadsheets that write decimals with a comma.")
@click.option("--dpi", type=click.IntRange(50, 1200), help="Of a PNG (default: 200).")
@click.option("--overwrite", is_flag=True, help="Replace files that are there.")
@click.option(
    "--update", is_flag=True, help="Change only BranchLab's charts and tables in a deck that is there."
)
def export(run_name: str, files: tuple[str, ...], overwrite: bool, update: bool, **wishes: Any) -> None:
    """Write a run to files for other programs; each file's ending says in which form.

    .pptx slides, .xlsx sheets, .html and .pdf report, .md tables, .svg and .png figures; trials as .csv, .jsonl
    and .parquet.
    """
    from lab.cli import exporting

    if update:
        if overwrite or any(wishes.values()):
            raise BadInput(
                "--update takes no other wishes", advice="The deck keeps its figures, size and template."
            )
        exporting.update(run_name, files)
    else:
        exporting.export(run_name, files, overwrite=overwrite, **wishes)


@cli.command()
@profile_argument
@click.option("--yes", is_flag=True, help="Do not ask: what is shown is agreed to.")
@click.option("--remove", is_flag=True, help="Take away what was installed by this command, instead.")
def provision(profile_path: str, yes: bool, remove: bool) -> None:
    """Install on the hosts of a profile the packages that a run needs and they lack; the commands are shown first."""
    from lab.cli import provisioning

    work = provisioning.unprovision if remove else provisioning.provision
    work(_loaded(profile_path).lab, yes=yes)


@cli.command()
@profile_argument
@experiment_option
@click.option("--operation", metavar="NAME", help="Full for which of its operations (default: get).")
@agree_option
@parts_given
def fill(
    parts: Parts, profile_path: str, experiment_name: str | None, operation: str | None, agreed: str | None
) -> None:
    """Bring the proxy's cache to full for an experiment's operation, by running that once through the proxy.

    What was brought in stays there, until it is purged.
    """
    from lab import hands, store
    from lab.cli import by_hand

    profile, kinds = _loaded(profile_path), _kinds(agreed)
    experiment = _chosen(profile, experiment_name)
    _planned(experiment)
    hands.cache_of(profile.lab)
    known = hands.cacheable(experiment, store.data_folder() / "vcs")
    named = by_hand.operation_of(operation, known, experiment.name)
    by_hand.fill(parts.hands(profile.lab, experiment), named, kinds)


@cli.command()
@profile_argument
@click.argument("percent", metavar="PERCENT")
@experiment_option
@agree_option
@parts_given
def purge(
    parts: Parts, profile_path: str, percent: str, experiment_name: str | None, agreed: str | None
) -> None:
    """Take so many per cent of the repository's objects out of the proxy's cache (0 to 100 %: `10%`).

    What would go is shown and asked first. Objects of others are never touched.
    """
    from lab import hands
    from lab.cli import by_hand

    profile, kinds, share = _loaded(profile_path), _kinds(agreed), by_hand.share_of(percent)
    experiment = _chosen(profile, experiment_name)
    _planned(experiment)
    hands.cache_of(profile.lab)
    by_hand.purge(parts.hands(profile.lab, experiment), share, experiment.seed, kinds)


@cli.command()
@profile_argument
@click.argument("text", metavar="LINE")
@agree_option
@parts_given
def line(parts: Parts, profile_path: str, text: str, agreed: str | None) -> None:
    """Apply a line ("64/128 kbit/s 40 ms") to the lab and hold it until Ctrl-C, which takes it back.

    "as it is" applies none, and takes back what an earlier BranchLab left.
    """
    from lab import units
    from lab.cli import by_hand, tables

    profile, kinds, wanted = _loaded(profile_path), _kinds(agreed), units.parse_line(text)
    for warning in wanted.warnings:
        click.echo(f"note: {warning}", err=True)
    by_hand.line(parts.hands(profile.lab, None), wanted.line, kinds, tables.console())


@cli.command()
@profile_argument
@click.option("--force", is_flag=True, help="Also from a run that is still going on; it fails there.")
@parts_given
def revert(parts: Parts, profile_path: str, force: bool) -> None:
    """Take back whatever a run left on the hosts of a profile, and in the scratch places of its experiments."""
    from lab.cli import scratch_places

    profile = _loaded(profile_path)
    for host, undone in parts.revert(profile.lab, force).items():
        for text in undone or ("nothing was left to take back",):
            click.echo(f"{host}: {plain(text)}")
    scratch_places.revert(profile, force=force)


@cli.command()
def schema() -> None:
    """Print the form of a profile as JSON Schema, for editors that complete and check TOML."""
    from lab import profile_schema

    _print_json(profile_schema.schema())


@cli.command()
@profile_argument
@parts_given
def forget(parts: Parts, profile_path: str) -> None:
    """Take back whatever a run left, then remove the last file that BranchLab made on the hosts of a profile."""
    for host, removed in parts.forget(_loaded(profile_path).lab).items():
        for text in removed or ("nothing was left",):
            click.echo(f"{host}: {text}")


@cli.command()
@click.option("--forget", "forgetting", is_flag=True, help="Take them out of the keyring.")
def passwords(forgetting: bool) -> None:
    """Name the passwords that BranchLab remembered in the system keyring; never the passwords themselves."""
    from lab.cli import passwords as kept

    click.echo(kept.forgotten() if forgetting else kept.remembered())


@cli.command()
@profile_argument
@experiment_option
@click.option("--remove", is_flag=True, help="Delete the place instead, with all that is in it.")
def scratch(profile_path: str, experiment_name: str | None, remove: bool) -> None:
    """Make the scratch place of an experiment in a repository of your own: one revision, and only there.

    Check-Out and Check-In change nothing of that repository outside of it.
    """
    from lab.cli import scratch_places

    profile = _loaded(profile_path)
    scratch_places.scratch(profile.lab, _chosen(profile, experiment_name), remove=remove)


@cli.group()
def lab() -> None:
    """A lab on this Linux machine: client, proxy and server, each a host of its own."""


@lab.command()
@click.option(
    "--clients", type=click.IntRange(1, 200), default=1, show_default=True, help="How many clients."
)
def up(clients: int) -> None:
    """Make the lab, and print the path of its profile. It stays until `lab down`."""
    from lab import embedded

    click.echo(embedded.up(clients, tied=False).profile_path)


@lab.command()
def down() -> None:
    """End the lab of `lab up`; nothing of it is left."""
    from lab import embedded

    gone = embedded.down()
    click.echo("the lab is down" if gone else "no lab was up")


@lab.command()
def status() -> None:
    """Say which labs there are."""
    from lab import embedded

    found = embedded.status()
    if not found:
        click.echo("no lab is up")
    for one in found:
        kind = "ends with the program that made it" if one.tied else "ends with `branchlab lab down`"
        click.echo(f"{one.profile}: {', '.join(one.hosts)}; it {kind}")


@lab.command(context_settings={"ignore_unknown_options": True})
@click.argument("host")
@click.argument("command", nargs=-1, type=click.UNPROCESSED, metavar="[-- COMMAND ...]")
def shell(host: str, command: tuple[str, ...]) -> None:
    """A shell on a host of the lab, or one command there; its exit status is this one's."""
    from lab import embedded

    sys.exit(embedded.shell(host, list(command)))


def _run(
    parts: Parts,
    path: str,
    experiment_name: str | None,
    *,
    headless: bool,
    agreed: frozenset[str] | None = None,
    rehearse: bool = False,
    repeated: str | None = None,
) -> int:
    """In the window or in the terminal. Bad input is refused before any host is touched."""
    from lab import asking, design, repeats, store
    from lab.cli import agreeing, rehearsal, scratch_places, story, tables

    profile = _loaded(path)
    experiment = _chosen(profile, experiment_name)
    _planned(experiment)
    file = store.found(repeated) if repeated else None
    known = None
    if file is not None:
        with store.opened(file) as record:
            known = record.told()
        if experiment_name is None:
            experiment = _chosen(profile, known.started.experiment.name)
        repeats.refuse_others(known, profile.lab, experiment)
    elif rehearse:
        experiment = design.rehearsal(experiment)
    elif not headless and parts.display_there():
        return _in_window(parts, path, experiment, agreed)
    out = tables.console()
    for warning in profile.warnings:
        click.echo(f"note: {warning}", err=True)
    if not parts.own(profile.lab):
        agreed = agreeing.agreed(
            asking.possible(experiment), lambda: parts.look(profile.lab, experiment), agreed
        )
    else:
        parts.look(profile.lab, experiment)  # where nothing is asked, it only refuses what could not be run
    testbed = parts.testbed(profile.lab, agreed or frozenset())
    if file is not None and known is not None:
        return story.repeat(file, known, testbed, out)
    if rehearse:
        return rehearsal.run(
            profile.lab,
            experiment,
            testbed,
            lambda: (*parts.left(profile.lab), *scratch_places.left(profile.lab, experiment)),
            out,
        )
    return story.run(profile.lab, experiment, testbed, out)


def _in_window(parts: Parts, path: str, experiment: Experiment, agreed: frozenset[str] | None) -> int:
    """Run in the window; once it is closed, the results as the terminal shows them."""
    from lab import store
    from lab.analysis import summary
    from lab.cli import story, tables

    record = store.new_path(experiment.name)
    open_window = parts.window()
    with signals.as_usual():
        code = (
            open_window(profile=path, experiment=experiment.name, run=True, record=str(record), agreed=agreed)
            or DONE
        )
    if record.exists():
        with store.opened(record) as opened:
            seen = summary.summarised(opened.events())
        story.report(seen, record, tables.console())
    return code


def _loaded(path: str) -> Profile:
    from lab import caches, profile

    loaded = profile.load(Path(path))
    for host in loaded.lab.hosts:
        if host.cache is not None:
            caches.kind(host.cache.kind)
    return loaded


def _chosen(profile: Profile, name: str | None) -> Experiment:
    """The experiment of this name, else the first."""
    experiments = {experiment.name: experiment for experiment in profile.experiments}
    if not experiments:
        raise BadInput(
            "the profile has no experiment", advice="Add one: [[experiments]] with a name and lines."
        )
    if name is None:
        return next(iter(experiments.values()))
    if name in experiments:
        return experiments[name]
    close = [known for known in experiments if name.lower() in known.lower()]
    if len(close) == 1:
        return experiments[close[0]]
    raise BadInput(
        f"the profile has no experiment `{name}`",
        advice=f"Write one of: {', '.join(f'`{known}`' for known in experiments)}.",
    )


def _kinds(agreed: str | None) -> frozenset[str] | None:
    """What was agreed to beforehand; None where a person is to be asked."""
    from lab import asking

    return None if agreed is None else asking.kinds(agreed)


def _planned(experiment: Experiment) -> tuple[Any, ...]:
    """The plan, once there are a driver and a data set that has what it needs; before any host is asked."""
    from lab import design, recipes, store, vcs

    vcs.driver(experiment.vcs, store.data_folder() / "vcs")
    recipes.asked(experiment)
    return design.trials(experiment)


def _print_json(value: object) -> None:
    click.echo(json.dumps(value, ensure_ascii=False, indent=2))


def main() -> None:
    """The entry point."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A terminal that knows no dash is no reason to show nothing.
        sys.stdout.reconfigure(errors="replace")
    # Warnings go to stderr; asked for by hand, everything does.
    level = os.environ.get("BRANCHLAB_LOG", "error").upper()
    logging.basicConfig(level=getattr(logging, level, logging.ERROR), format="%(name)s: %(message)s")
    with signals.as_interrupts():
        cli()


if __name__ == "__main__":
    main()
