"""`retold watch`: what your agents do, as they do it, archived on the way."""

from __future__ import annotations

TYPE_CHECKING = False  # typing's own costs half a start of Python to import
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from retold.cli.console import Console
    from retold.maintenance.watch import News


def arguments(parser: ArgumentParser) -> None:
    """Add what `watch` understands."""
    from retold.cli.progress import home_arguments

    home_arguments(parser, "also follow this home folder: another machine's, or one that will be there later")
    parser.add_argument("--thoughts", action="store_true", help="also what the model thought")
    parser.add_argument("--json", action="store_true", help="one JSON object per event, as it comes")


def run(options: Namespace, console: Console) -> int:
    """Bring the archive up to date, then tell what is new until Ctrl-C."""
    from retold.cli.progress import Progress, asked_task, coverage_line
    from retold.maintenance.watch import SessionWatch, WatchListener, change_events, rested, session_folders

    task = asked_task(console, options.home or (), options.agent or ())
    progress = Progress(console)
    ear = WatchListener(progress.tell_wait, progress.show, progress.tell_damage, progress.tell_problem)
    watch = SessionWatch(task, ear, with_thoughts=options.thoughts)
    coverage = watch.begin()
    progress.end()
    console.tell(coverage_line(coverage))
    count = len(session_folders(task))
    console.tell(
        f"retold: watching {count} folder{'' if count == 1 else 's'} for what is new; Ctrl-C ends it"
    )
    printer = _Printer(console, is_json=options.json)

    def look() -> None:
        for news in watch.look():
            printer.show(news)

    for _ in change_events(task, lambda why: console.tell(f"retold: looking every other second: {why}")):
        rested(look)
    return 0


class _Printer:
    """Writes news as they come, each with the session that it is of where that was another before."""

    def __init__(self, console: Console, *, is_json: bool) -> None:
        self._console, self._is_json = console, is_json
        self._shown: str | None = None

    def show(self, news: News) -> None:
        from retold.export.text.events import live_heading, live_lines
        from retold.model.serialization import step_json

        if self._is_json:
            for step in news.steps:
                self._console.record(step_json(step))
        else:
            if news.session.key != self._shown:
                heading = live_heading(news.session)
                self._console.line(heading.text, heading.style)
                self._shown = news.session.key
            for line in live_lines(news.session, news.steps):
                self._console.line(line.text, line.style)
        self._console.out.flush()
