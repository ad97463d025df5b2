#!/bin/sh
# check_subjects.sh RANGE: fail if the subject of a commit in RANGE has more than 72 characters or ends with a full stop.
set -eu
git log --format='%h %s' "$1" | awk '
    { subject = substr($0, index($0, " ") + 1) }
    length(subject) > 72 || subject ~ /\.$/ { print "subject of more than 72 characters, or with a full stop: " $0; wrong = 1 }
    END { exit wrong }
'
