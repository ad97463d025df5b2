"""`retold watch`: print new events of all sessions as agents write them, and archive them."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from retold.cli.console import Console
    from retold.maintenance.watch import News


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of `watch`."""
    from retold.cli.progress import add_home_arguments

    add_home_arguments(
        parser, "also follow this home folder: another machine's, or one that will be there later"
    )
    parser.add_argument("--thoughts", action="store_true", help="also what the model thought")
    parser.add_argument("--json", action="store_true", help="one JSON object per event, as it comes")


def run(options: Namespace, console: Console) -> int:
    """Bring the archive up to date, then print new events until Ctrl-C."""
    from retold.cli.progress import Progress, format_coverage, sync_task
    from retold.maintenance import watch as watching

    task = sync_task(console, options.home or (), options.agent or ())
    progress = Progress(console)
    callbacks = progress.notice_wait, progress.show, progress.notice_damage, progress.notice_problem
    listener = watching.WatchListener(*callbacks)
    watch = watching.SessionWatch(task, listener, with_thoughts=options.thoughts)
    coverage = watch.begin()
    progress.end()
    console.notice(format_coverage(coverage))
    count = len(watching.session_folders(task))
    console.notice(
        f"retold: watching {count} folder{'' if count == 1 else 's'} for what is new; Ctrl-C ends it"
    )
    printer = _Printer(console, is_json=options.json)

    def look() -> None:
        for news in watch.look():
            printer.show(news)

    def warn(error: str) -> None:
        console.notice(f"retold: looking every other second: {error}")

    for _ in watching.change_events(task, warn):
        watching.run_then_rest(look)
    return 0


class _Printer:
    """Prints news, with a heading whenever the session changes."""

    def __init__(self, console: Console, *, is_json: bool) -> None:
        self._console, self._is_json = console, is_json
        self._key: str | None = None

    def show(self, news: News) -> None:
        from retold.export.text.events import format_live_heading, format_live_steps
        from retold.model.serialization import encode_step

        if self._is_json:
            for step in news.steps:
                self._console.write_json(encode_step(step))
        else:
            if news.session.key != self._key:
                heading = format_live_heading(news.session)
                self._console.write_line(heading.text, heading.style)
                self._key = news.session.key
            for line in format_live_steps(news.session, news.steps):
                self._console.write_line(line.text, line.style)
        self._console.out.flush()
