/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Growth of the boards of submit (docs/design/001-claims-and-rings.md, "Boards: claims"; drover/pool/submit_queue.cc, worker_loop.cc): boards
 * of 1, 2 and 4 entries, two workers that may be killed at any step, a parent that never blocks, one service thread.
 *
 * Checked: every task is done or lost exactly once; a lost one was claimed by a worker that died; all tasks are settled in the end (else
 * the state is an invalid end state: an armed entry that no cursor will reach).
 *
 * RETRY: a task lost with its worker is armed again, once, in its place, and `rescan` is counted up.
 * REPLACE=0: the dead are not replaced: the living finish alone. (A new worker looks at every entry, and starts after the words of the dead
 * are settled: with one, a task that is armed again would be found late, but found.)
 */
#ifndef T
#define T 3
#endif
#ifndef DEATHS
#define DEATHS 1
#endif
#ifndef REPLACE
#define REPLACE 1
#endif
#define B 3                  /* boards 0, 1, 2 with 1 << b entries; entry e of board b is at (1 << b) - 1 + e */
#define SIZE(b) (1 << (b))
#define AT(b, i) (SIZE(b) - 1 + (i) % SIZE(b))

#include "parent.pml"

#define FREE 0
#define ARMED 1
#define CLAIMED 2
#define DONE 3
#define LOST 4
#define MK(o, f) ((o) * 8 + (f))
#define PHASE(w) ((w) & 7)
#define OWNER(w) ((w) >> 3)

byte word[7];
byte task[7];
byte tail[B];
byte last_board;             /* the newest board: board_count - 1 */
byte rescan;
byte inc[2], next_inc = 3, kills;
bit zombie[2], start[2], over;
byte settled;
bit done[T], lost[T], again[T];

#define DIE atomic { kills < DEATHS && !over -> kills++; goto die } \
	:: ORPHANED -> goto quit

proctype worker(byte s)
{
	byte me, b, cur, tl, rs, k, e;
	bit idle;
again_:
	atomic {
		me = inc[s];
		rs = rescan;
#ifdef BUG_START_NEWEST
		b = last_board;
#else
		b = 0;               /* a new worker begins at the oldest board */
#endif
		cur = 0; tl = 0; idle = 0
	};
	do
	:: over -> goto quit
	:: DIE
	/* has_work, and refresh. Cursors of boards after b are at 0 always, those before b are looked at again only after a rewind. */
	:: atomic { !idle || rescan != rs || last_board > b || cur < tail[b] || PHASE(word[AT(b, cur)]) == ARMED ->
			idle = 0;
			if
			:: rescan != rs ->
#ifndef BUG_RESCAN_LATE
				rs = rescan;
#endif
#ifndef BUG_REWIND_ONE
				b = 0;
#endif
				cur = 0; tl = 0
			:: else
			fi
		};
scan:
		if
		:: DIE
		:: skip
		fi;
		if                   /* claim_here: without having seen the tail pass it */
		:: atomic { PHASE(word[AT(b, cur)]) == ARMED ->
				e = AT(b, cur); word[e] = MK(me, CLAIMED); k = task[e];
				cur++;           /* should it be an older one, armed again: then rescan changes, and the cursor rewinds */
				if
				:: tl < cur -> tl = cur
				:: else
				fi;
				goto runs
			}
		:: else
		fi;
		if
		:: cur == tl ->
			if
			:: DIE
			:: atomic {
					tl = (tail[b] > cur -> tail[b] : cur);
					if
					:: cur + SIZE(b) < tl -> cur = tl - SIZE(b)
					:: cur == tl -> goto next_board
					:: else
					fi
				}
			fi
		:: else
		fi;
		if
		:: DIE
		:: atomic {          /* load and CAS: see claims.pml; the flags are in future.pml */
				e = AT(b, cur); cur++;
				if
				:: PHASE(word[e]) == ARMED -> word[e] = MK(me, CLAIMED); k = task[e]
				:: else -> e = 0; goto scan
				fi
			}
		fi;
runs:
		assert(!done[k] && !lost[k]); /* the task runs */
		if
		:: DIE
		:: atomic { word[e] = MK(me, DONE); done[k] = 1; settled++; k = 0; e = 0 }
		fi;
#ifdef BUG_RESCAN_LATE
		goto scan;
#else
		goto served;
#endif
next_board:
		if                   /* "Another board exists: nothing is armed in this one any more, ..." */
		:: DIE
		:: last_board == b -> goto none
		:: last_board > b
		fi;
#ifndef BUG_NO_LAST_LOOK
		if                   /* "... but what was armed before may not have been seen yet": the tail once more */
		:: DIE
		:: cur < tail[b] -> goto scan
		:: cur >= tail[b]
		fi;
#endif
		atomic { b++; cur = 0; tl = 0 };
		goto scan;
none:
#ifdef BUG_RESCAN_LATE       /* what it has compared is noted only after the last look at the tails */
		rs = rescan;
#endif
		idle = 1;
served:
		skip
	od;
die:
	atomic { me = 0; cur = 0; tl = 0; rs = 0; b = 0; e = 0; k = 0; zombie[s] = 1 };
	if
	:: start[s] -> start[s] = 0; goto again_
	:: over
	:: ORPHANED
	fi;
quit:
	skip
}

proctype parent()
{
	byte k, t, n;
	{ do
	:: k < T ->
		/* submit: a free position at or after tail, else a board of twice the size */
		atomic {
			n = 0;
			do
			:: n < SIZE(last_board) && PHASE(word[AT(last_board, t)]) != FREE -> t++; n++
			:: else -> break
			od
		};
		if
		:: n == SIZE(last_board) -> atomic { assert(last_board + 1 < B); last_board++; t = 0 }
		:: else
		fi;
		n = 0;
		task[AT(last_board, t)] = k;
		word[AT(last_board, t)] = ARMED;
		atomic { t++; tail[last_board] = t; k++ }
	/* the result has been taken: the position is free again */
	:: atomic { settled < T && PHASE(word[0]) == DONE -> word[0] = FREE; task[0] = 0 }
	:: atomic { settled < T && PHASE(word[1]) == DONE -> word[1] = FREE; task[1] = 0 }
#ifdef BUG_ARM_OLD
	:: atomic { k < T && last_board > 0 && PHASE(word[0]) == FREE -> task[0] = k; word[0] = ARMED; tail[0] = tail[0] + 1; k++ }
#endif
	:: settled == T -> break
	od;
	over = 1 } UNLESS_GONE
}

proctype service()
{
	byte s, p;
	bit rearmed;
	{ do
	:: over -> break
	:: zombie[0] -> s = 0; goto notice
	:: zombie[1] -> s = 1;
notice:
		/* worker_died: under the lock of submit; but an entry of the dead concerns no submit, so that it is not needed here */
		do
		:: atomic { p < 7 && PHASE(word[p]) == CLAIMED && OWNER(word[p]) == inc[s] ->
				assert(!done[task[p]] && !lost[task[p]]);
				if
#ifdef RETRY
#ifdef BUG_RESCAN_FIRST
				:: !again[task[p]] -> again[task[p]] = 1; rearmed = 1
#else
				:: !again[task[p]] -> again[task[p]] = 1; word[p] = ARMED; rearmed = 1
#endif
#endif
				:: else -> lost[task[p]] = 1; settled++; word[p] = MK(inc[s], LOST)
				fi
			};
			if
			:: rearmed ->
				rearmed = 0;
#ifndef BUG_NO_RESCAN
				rescan++;
#endif
#ifdef BUG_RESCAN_FIRST
				word[p] = ARMED
#endif
			:: else
			fi
		:: atomic { p < 7 && !(PHASE(word[p]) == CLAIMED && OWNER(word[p]) == inc[s]) -> p++ }
		:: p == 7 -> break
		od;
		atomic { zombie[s] = 0; inc[s] = next_inc; next_inc++; start[s] = REPLACE; p = 0; s = 0 }
	od } UNLESS_GONE
}

init
{
	atomic {
		inc[0] = 1; inc[1] = 2;
		select(kills : 0 .. DEATHS); /* how many of the deaths are spent already */
		RUN_KILLER;
		run worker(0); run worker(1); run parent(); run service()
	}
}
