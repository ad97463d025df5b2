"""What a session comes to: pure functions of its timeline.

What counts: entries that are the session's own, so that what was copied from another counts once, there. What was compacted
was said and done all the same. What was rewound was taken back: nothing was decided there and nothing is open, but what
failed there did fail, and is told with its fate. What was superseded is told again elsewhere.
"""
