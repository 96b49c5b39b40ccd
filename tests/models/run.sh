#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Verifies the models in this folder with spin. Usage: run.sh [full] [pattern]   (JOBS=n checks n variants at a time)
# Exits 0 if every variant ends as expected, 1 if not, 77 if spin or gcc is missing.
set -u
here=$(cd "$(dirname "$0")" && pwd)
full=0
if [ "${1:-}" = full ]; then full=1; shift; fi
pattern=${1:-.}
jobs=${JOBS:-$(nproc)}
command -v spin >/dev/null && command -v "${CC:-gcc}" >/dev/null || { echo "needs spin and gcc"; exit 77; }
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

# check NUMBER ok|big|fails MODEL FLAGS...: a variant that must hold (big: worth optimizing), or a mutation that must be found
check() {
	local id=$1 want=$2 model=$3 dir="$work/$1" opt=-O0 safety=-DSAFETY pan=-E flags t0 errors states got
	shift 3
	flags="$*"
	mkdir "$dir" && cd "$dir" && cp "$here/$model" "$here/parent.pml" . || return
	[ "$want" = big ] && opt=-O1 want=ok
	[ $full = 1 ] && opt="$opt -DCOLLAPSE"                                     # less memory, slower
	case $model in claims.pml | count.pml | boards.pml | reuse.pml) pan= ;; esac          # these must end: invalid end states count
	case $flags in *NPCHECK*) safety=-DNP; pan="$pan -l" ;; esac              # no cycle at all
	t0=$(date +%s.%N)
	{ spin -a $flags "$model" && "${CC:-gcc}" $opt -w $safety -DMEMLIM=3000 -o pan pan.c && ./pan $pan -m20000 -w20; } >out 2>&1
	errors=$(sed -n 's/.*errors: \([0-9]*\).*/\1/p' out)
	states=$(sed -n 's/^ *\([0-9]*\) states, stored.*/\1/p' out)
	got=broken                                                                # did not build, ran out of memory or depth
	if [ "${errors:-0}" -gt 0 ] && grep -Eq '^pan:[0-9]*:? *(assertion violated|invalid end state|non-progress)' out; then got=fails; fi
	if [ "${errors:-1}" -eq 0 ] && ! grep -Eq 'max search depth too small|MEMLIM|out of memory|Search not completed' out; then got=ok; fi
	local line="$model $flags (${states:-?} states, $(awk "BEGIN { printf \"%.1f\", $(date +%s.%N) - $t0 }") s)"
	if [ "$got" = "$want" ]; then
		[ "$want" = ok ] && echo "ok $line" || echo "ok $line: fails as expected"
	else
		echo "NOT OK $line: expected $want, got $got"
		grep -E '^(pan:|spin:|error|pan.c)' out | head -3
		touch "$work/failed"
	fi
	rm -rf "$dir"
}

n=0
while read -r want line; do
	case $want in '' | '#'*) continue ;; esac
	case $want in
		full) [ $full = 1 ] || continue; want=big ;;                             # only in the full run
		found) [ $full = 1 ] || continue; want=fails ;;                          # likewise, a mutation
	esac
	[[ "$line" =~ $pattern ]] || continue
	while [ "$(jobs -rp | wc -l)" -ge "$jobs" ]; do wait -n; done
	n=$((n + 1))
	check $n "$want" $line &
done <<'LIST'
ok claims.pml -DT=3 -DDEATHS=0
full claims.pml -DT=3 -DDEATHS=1
ok claims.pml -DT=2 -DDEATHS=1 -DRETRIES=1
ok claims.pml -DT=3 -DDEATHS=1 -DCHUNK=2
full claims.pml -DT=2 -DDEATHS=2 -DCHUNK=2 -DRETRIES=1
ok claims.pml -DT=2 -DDEATHS=1 -DCHUNK=2 -DNPCHECK
ok claims.pml -DT=3 -DDEATHS=0 -DPARENT_DIES
full claims.pml -DT=2 -DDEATHS=1 -DRETRIES=1 -DPARENT_DIES
full claims.pml -DT=2 -DDEATHS=2
full claims.pml -DT=3 -DDEATHS=1 -DRETRIES=1
full claims.pml -DT=3 -DDEATHS=1 -DCHUNK=2 -DRETRIES=1
full claims.pml -DT=4 -DDEATHS=1 -DCHUNK=2
full claims.pml -DT=3 -DDEATHS=1 -DCHUNK=2 -DWINDOW=4
full claims.pml -DT=4 -DDEATHS=0
full claims.pml -DT=2 -DDEATHS=2 -DRETRIES=1
fails claims.pml -DT=3 -DDEATHS=0 -DCHUNK=2 -DR=1
fails claims.pml -DBUG_NO_CAS -DT=2 -DDEATHS=0
found claims.pml -DBUG_ARM_BUSY -DT=3 -DDEATHS=0
found claims.pml -DBUG_TAIL_FIRST -DT=2 -DDEATHS=0
fails claims.pml -DBUG_WORD_FIRST -DT=3 -DDEATHS=0
found claims.pml -DBUG_PUBLISH_FIRST -DT=2 -DDEATHS=0
fails claims.pml -DBUG_RING_RESTART -DT=2 -DDEATHS=1
found claims.pml -DBUG_CURSOR_AT_TAIL -DT=2 -DDEATHS=2
found claims.pml -DBUG_NOTICE_EARLY -DT=2 -DDEATHS=1
fails claims.pml -DBUG_NO_DRAIN -DT=2 -DDEATHS=1
found claims.pml -DBUG_LATE_SET -DT=2 -DDEATHS=2
found claims.pml -DBUG_NEWER_DEAD -DT=2 -DDEATHS=2
fails claims.pml -DBUG_SEEN_LATE -DT=2 -DDEATHS=2
fails claims.pml -DBUG_DEATH_UNKNOWN -DT=2 -DDEATHS=2
fails claims.pml -DBUG_NO_RESCAN -DT=2 -DDEATHS=1 -DRETRIES=1
fails claims.pml -DBUG_RESCAN_FIRST -DT=2 -DDEATHS=1 -DRETRIES=1
found claims.pml -DBUG_RESCAN_LATE -DT=2 -DDEATHS=1 -DRETRIES=1
fails claims.pml -DBUG_WORD_FIRST -DT=3 -DDEATHS=0 -DPARENT_DIES
fails claims.pml -DBUG_NO_LIFELINE -DT=2 -DDEATHS=0 -DPARENT_DIES
ok count.pml -DDEATHS=2 -DRETRIES=1
full count.pml -DDEATHS=2 -DT=4
ok count.pml -DW=2 -DRETRIES=1
full count.pml -DW=2 -DN=2
full count.pml -DW=2 -DN=2 -DT=4
ok count.pml -DRETRIES=1 -DPARENT_DIES
full count.pml -DW=2 -DPARENT_DIES
fails count.pml -DBUG_NO_LIFELINE -DDEATHS=0 -DPARENT_DIES
fails count.pml -DBUG_PROGRESS_FIRST
fails count.pml -DBUG_ERROR_FIRST -DDEATHS=0
fails count.pml -DBUG_AT_FIRST -DT=4
fails count.pml -DBUG_AT_STAYS -DT=4
fails count.pml -DBUG_AT_NOT_RESET -DDEATHS=2
fails count.pml -DBUG_COPY_LATE
fails count.pml -DBUG_NO_DRAIN
fails count.pml -DBUG_NOT_DELIVERED
ok channel_bells.pml -DP=1 -DC=1 -DITEMS=2
ok channel_bells.pml -DP=1 -DC=1 -DSTREAM=1 -DDEATHS=1
ok channel_bells.pml -DP=2 -DC=1 -DEARLY=1
full channel_bells.pml -DP=2 -DC=1 -DDEATHS=2
full channel_bells.pml -DP=1 -DC=2 -DITEMS=2 -DCAP=2 -DHANG
fails channel_bells.pml -DP=2 -DC=1 -DBUG_NO_RECHECK_C
fails channel_bells.pml -DP=1 -DC=1 -DITEMS=2 -DBUG_NO_RECHECK_P
fails channel_bells.pml -DP=1 -DC=2 -DITEMS=2 -DCAP=2 -DHANG -DBUG_NO_PASS_ON
fails channel_bells.pml -DP=1 -DC=2 -DSTREAM=1 -DBUG_NO_PASS_AT_LOCK
fails channel_bells.pml -DP=1 -DC=1 -DBUG_RING_FIRST
fails channel_bells.pml -DP=1 -DC=1 -DBUG_HEAD_FIRST
fails channel_bells.pml -DP=1 -DC=1 -DITEMS=2 -DBUG_FREE_FIRST
fails channel_bells.pml -DP=1 -DC=2 -DITEMS=2 -DBUG_SAME_WORD
fails channel_bells.pml -DP=2 -DC=1 -DEARLY=1 -DBUG_CLOSE_WITHOUT_LOCK
ok lock_word.pml -DT=2
ok lock_word.pml -DT=2 -DDEATHS=2
ok lock_word.pml -DT=3 -DROUNDS=1 -DDEATHS=2
ok lock_word.pml -DT=3 -DROUNDS=1 -DDEATHS=0 -DSLICES=0
full lock_word.pml -DT=3
fails lock_word.pml -DT=2 -DSLICES=0
fails lock_word.pml -DT=2 -DBUG_STORE
fails lock_word.pml -DT=3 -DROUNDS=1 -DDEATHS=2 -DBUG_TAKER_PASSES
fails lock_word.pml -DT=2 -DDEATHS=0 -DSLICES=0 -DBUG_NO_SIGN
fails lock_word.pml -DT=2 -DDEATHS=0 -DSLICES=0 -DBUG_NO_COMPARE
fails lock_word.pml -DT=3 -DROUNDS=1 -DDEATHS=0 -DSLICES=0 -DBUG_FORGETS_OTHERS
ok shared_mutex.pml -DREADERS=2
ok shared_mutex.pml -DWRITERS=2 -DREADERS=1
full shared_mutex.pml -DWRITERS=2 -DREADERS=2 -DDEATHS=2
full shared_mutex.pml -DWRITERS=1 -DREADERS=3 -DPLACES=2
fails shared_mutex.pml -DBUG_NEST_ELSEWHERE
fails shared_mutex.pml -DBUG_NO_SECOND_LOOK
fails shared_mutex.pml -DBUG_STEP_BACK_ANY
fails shared_mutex.pml -DBUG_NO_FORGET
fails shared_mutex.pml -DBUG_GUARDS_EARLY
ok barrier.pml -DDEATHS=2 -DRESETS=2
ok barrier.pml -DPARTIES=3 -DDEATHS=2 -DRESETS=2 -DGIVE_UP=1
fails barrier.pml -DBUG_BREAKS_ANY
fails barrier.pml -DBUG_FORGETS_LATE
ok boards.pml -DDEATHS=0
full boards.pml -DDEATHS=1
big boards.pml -DDEATHS=1 -DRETRY
full boards.pml -DDEATHS=1 -DRETRY -DREPLACE=0
full boards.pml -DDEATHS=2 -DRETRY
ok boards.pml -DDEATHS=0 -DPARENT_DIES
full boards.pml -DDEATHS=1 -DRETRY -DPARENT_DIES
fails boards.pml -DBUG_NO_LIFELINE -DDEATHS=0 -DPARENT_DIES
fails boards.pml -DDEATHS=0 -DBUG_NO_LAST_LOOK
found boards.pml -DDEATHS=0 -DBUG_ARM_OLD
fails boards.pml -DDEATHS=2 -DT=2 -DBUG_START_NEWEST
found boards.pml -DDEATHS=1 -DT=2 -DRETRY -DREPLACE=0 -DBUG_NO_RESCAN
found boards.pml -DDEATHS=1 -DT=2 -DRETRY -DREPLACE=0 -DBUG_RESCAN_FIRST
found boards.pml -DDEATHS=1 -DT=2 -DRETRY -DREPLACE=0 -DBUG_RESCAN_LATE
fails boards.pml -DDEATHS=1 -DT=2 -DRETRY -DREPLACE=0 -DBUG_REWIND_ONE
ok reuse.pml
full reuse.pml -DSLOT_FUNCTION -DBUG_NO_REFRESH
full reuse.pml -DDEATHS=1 -DT=2
full reuse.pml -DDEATHS=1
big reuse.pml -DT=2 -DPARENT_DIES
full reuse.pml -DPARENT_DIES
fails reuse.pml -DBUG_NO_LIFELINE -DPARENT_DIES
fails reuse.pml -DBUG_NO_REFRESH
found reuse.pml -DBUG_GENERATION_FIRST
fails reuse.pml -DBUG_DONE_ALWAYS
found reuse.pml -DBUG_NO_DONE
fails reuse.pml -DBUG_CLOSE_BY_STORE
found reuse.pml -DBUG_CLOSE_LEAVES
fails reuse.pml -DBUG_NO_WAIT
found reuse.pml -DBUG_STRICT
fails reuse.pml -DBUG_NO_LAST_DRAIN
ok future.pml -DDEATHS=1 -DSIGNALS=0
full future.pml -DDEATHS=1
ok future.pml -DDEATHS=0 -DSIGNALS=2
ok future.pml -DDEATHS=0 -DCANCEL=0 -DGETTERS=2 -DPOKE_COUNT
ok future.pml -DDEATHS=1 -DCANCEL=0 -DSIGNALS=0 -DGETTERS=2 -DPOKE_COUNT
full future.pml -DDEATHS=2 -DSIGNALS=2
fails future.pml -DDEATHS=0 -DCANCEL=0 -DGETTERS=2
fails future.pml -DBUG_LOST_CAS_SKIPS -DSIGNALS=0
fails future.pml -DBUG_CLAIM_DROPS_FLAGS
found future.pml -DBUG_DONE_BY_STORE
found future.pml -DBUG_POKE_NO_FLAG -DDEATHS=0
found future.pml -DBUG_POKED_STAYS -DSIGNALS=2
fails future.pml -DBUG_REGISTER_LATE -DDEATHS=0
fails future.pml -DBUG_NOTICE_EARLY -DSIGNALS=0 -DCANCEL=0
found future.pml -DBUG_NO_DEATH_WAKE -DSIGNALS=0
found future.pml -DBUG_CANCEL_BY_STORE -DSIGNALS=0
ok sleep.pml -DDEATHS=0 -DTASKS=3
ok sleep.pml -DREPLACE=0
big sleep.pml -DREARM
full sleep.pml -DTASKS=3
full sleep.pml -DTASKS=3 -DREARM
full sleep.pml -DW=3 -DDEATHS=0
full sleep.pml -DW=3 -DDEATHS=0 -DTASKS=3 -DBUG_NO_PASS_ON
ok sleep.pml -DBUG_NO_PASS_ON -DDEATHS=0 -DTASKS=3
ok sleep.pml -DBUG_NO_PASS_ON -DBUG_ROBBED_SLEEPS -DREARM
ok sleep.pml -DBUG_TAKEN_BIT_IGNORED -DDEATHS=0
fails sleep.pml -DBUG_NO_PASS_ON -DBUG_TAKEN_BIT_IGNORED -DDEATHS=0
found sleep.pml -DBUG_PASS_ON_LATE -DBUG_TAKEN_BIT_IGNORED -DDEATHS=0
fails sleep.pml -DBUG_ROBBED_SLEEPS -DREPLACE=0
fails sleep.pml -DBUG_ROBBED_SLEEPS -DREARM
found sleep.pml -DBUG_ROBBED_SLEEPS -DTASKS=3
fails sleep.pml -DNO_FENCE -DDEATHS=0
fails sleep.pml -DBUG_NO_RECHECK -DDEATHS=0
fails sleep.pml -DBUG_CLAIM_BEFORE_BIT -DDEATHS=0
fails sleep.pml -DBUG_NO_DEATH_WAKE -DREPLACE=0
found sleep.pml -DBUG_STALE_BITS -DBUG_NO_DEATH_WAKE -DREPLACE=0
fails sleep.pml -DBUG_CLEAR_LATE -DBUG_ROBBED_SLEEPS -DBUG_NO_PASS_ON
ok doorbell.pml -DDEATHS=0
big doorbell.pml -DDEATHS=1
full doorbell.pml -DDEATHS=0 -DITEMS=3
full doorbell.pml -DDEATHS=2 -DITEMS=1 -DTHRESHOLD=1
full doorbell.pml -DDEATHS=0 -DTHRESHOLD=1 -DHANG -DBURST=1
big doorbell.pml -DDEATHS=0 -DTHRESHOLD=1 -DHANG -DTIMEOUT
ok doorbell.pml -DDEATHS=0 -DHANG -DTIMEOUT
full doorbell.pml -DDEATHS=1 -DTHRESHOLD=1 -DHANG -DTIMEOUT
fails doorbell.pml -DDEATHS=0 -DTHRESHOLD=1 -DHANG
found doorbell.pml -DDEATHS=0 -DHANG
fails doorbell.pml -DNO_FENCE_W -DITEMS=1 -DTHRESHOLD=1
fails doorbell.pml -DNO_FENCE_C -DITEMS=1 -DTHRESHOLD=1
fails doorbell.pml -DBUG_OUT_SILENT
found doorbell.pml -DBUG_DEATH_SILENT
fails doorbell.pml -DBUG_DEATH_EXCHANGE
ok life_line.pml
ok life_line.pml -DLOST_SIGNAL
ok life_line.pml -DNO_LINE
fails life_line.pml -DLOST_SIGNAL -DNO_LINE
fails life_line.pml -DTHREAD_ENDS
fails life_line.pml -DBUG_LOOK_FIRST
fails life_line.pml -DLOST_SIGNAL -DBUG_NO_POLL
fails life_line.pml -DNO_LINE -DBUG_NO_GETPPID
LIST
wait
[ -e "$work/failed" ] && { echo "models: some variants did not end as expected"; exit 1; }
[ $n -gt 0 ] || { echo "models: nothing matches"; exit 1; }
echo "models: all $n variants end as expected"
