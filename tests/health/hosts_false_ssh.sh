#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A false ssh for tests: -o OPTION -o OPTION HOST COMMAND. What it does hangs on the name of the host.
[ "$1 $2 $3" = "-o BatchMode=yes -o" ] || exit 99
shift 4
host=$1 command=$2
[ $# -eq 2 ] || exit 98
case $host in
  good* | user@good*) exec /bin/sh -c "$command" ;;
  motd*)
    echo "Welcome to the cluster { 2 }"
    exec /bin/sh -c "$command" ;;
  unreachable*)
    echo "some noise" >&2
    echo "ssh: connect to host $host port 22: No route to host" >&2
    exit 255 ;;
  missing*)
    echo "sh: 1: drover: not found" >&2
    exit 127 ;;
  garbage*) echo "this is { no ] report" ;;
  truncated*) /bin/sh -c "$command" | head -c 1000 ;;
  silent*) exit 0 ;;
  older*) # an older drover refuses an option
    printf 'The following argument was not expected: --new\n\nTry %s for the options.\n' "'drover inspect --help'" >&2
    exit 2 ;;
  endless*) exec yes '{"schema": [1, 2, 3]}' ;;
  noisy*) exec yes "a complaint" >&2 ;;
  waiting*) exec sleep 1000 ;;
  hanging*)
    sleep 1000 &
    exec sleep 1000 ;;
  stubborn*)
    trap '' TERM HUP INT
    while :; do sleep 1; done ;;
  leaving*) # what it leaves holds both pipes
    sleep 1000 &
    exec /bin/sh -c "$command" ;;
  crashing*) kill -SEGV $$ ;;
  counted*) # how many of its kind run at once
    mkdir "$COUNT_FOLDER/$host"
    ls "$COUNT_FOLDER" | grep -c counted >>"$COUNT_FOLDER/log"
    /bin/sh -c "$command"
    rmdir "$COUNT_FOLDER/$host" ;;
  *) exit 97 ;;
esac
