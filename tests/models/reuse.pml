/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two maps, one after the other, in one job slot (drover/pool/core.cc open_job, map_job.cc close and finished_after_close, worker_loop.cc): the
 * board, the rings and the words are the same memory. Two workers that may be killed at any step; a consumer that gives job 1 up at any time
 * and then reads job 2 to its end; one service thread.
 *
 * Checked: what runs is of the job that is open and runs with its function; no record of one job is read in the other, none of an open
 * job that cannot be (for which the consumer would kill a sound worker); in job 2 each item is delivered or failed exactly once; both jobs end (else the state is an invalid end state).
 *
 * A worker keeps the job's function in its view of the slot. SLOT_FUNCTION: it reads it from the slot after the claim.
 */
#ifndef T
#define T 3                  /* inputs of each job */
#endif
#define CHUNK 2
#ifndef DEATHS
#define DEATHS 0
#endif
#define N 2
#define W 2
#define R T                  /* the window sees to it that a ring never fills */

#include "parent.pml"

#define FREE 0
#define ARMED 1
#define CLAIMED 2
#define DONE 3
#define MK(o, f) ((o) * 4 + (f))
#define PHASE(w) ((w) & 3)
#define OWNER(w) ((w) >> 2)

/* the slot */
byte generation, function, tail, rescan;
bit closed;
byte word[N], base[N], cnt[N], head[W], rd[W], rpos[W * R], ritem[W * R];

byte inc[W], member[W], newest, deaths, kills;
bit zombie[W], start[W], over;
/* ghosts: the job that is open, 0 while the slot may go to another; whose an armed entry and a record are */
byte open, owned[N], rjob[W * R];
bit delivered[T], failed[T]; /* of the open job */

#define DIE atomic { kills < DEATHS && !over -> kills++; goto die } \
	:: ORPHANED -> goto quit
#define ROOM (h - rd[s] < R)

proctype worker(byte s)
{
	byte me, vg, vf, rs, c, i, h, p, f;
	short cur, tl;
	bit idle;
again:
	atomic { me = inc[s]; h = head[s]; idle = 0 };
	do
	:: over -> goto quit
	:: DIE
	/* has_work, and refresh at the beginning of serve */
	:: atomic { !idle || generation != vg || rescan != rs || tail != cur ->
			idle = 0;
			if
			:: generation != vg || rescan != rs -> vg = generation; rs = rescan; cur = 0; tl = 0;
#ifndef SLOT_FUNCTION
				vf = function
#endif
			:: else
			fi
		};
scan:
		if
		:: cur == tl ->
			if
			:: DIE
			:: atomic {
					tl = tail;   /* counts without sign: a tail that was reset is far ahead */
					if
					:: tl - cur > N || tl < cur -> cur = tl - N
					:: cur == tl -> goto none
					:: else
					fi
				}
			fi
		:: else
		fi;
		if
		:: DIE
		:: atomic {
				p = (cur + N) % N; cur++;
				if
				:: PHASE(word[p]) == ARMED -> word[p] = MK(me, CLAIMED)
				:: else -> p = 0; goto scan
				fi
			}
		fi;
		assert(owned[p] == open);
		if
		:: DIE
		:: atomic {
#ifndef BUG_NO_REFRESH       /* "the slot may have gone to another job between the look at it and the claim" */
				if
				:: generation != vg || rescan != rs -> vg = generation; rs = rescan; cur = 0; tl = 0;
#ifndef SLOT_FUNCTION
					vf = function
#endif
				:: else
				fi;
#endif
#ifndef SLOT_FUNCTION
				f = vf;
#else
				f = function;
#endif
				c = cnt[p]
			}
		fi;
		do
		:: i < c ->
			if
			:: DIE
			:: closed -> break   /* begin_item */
			:: !closed
			fi;
			assert(owned[p] == open && f == open && !delivered[base[p] + i] && !failed[base[p] + i]); /* the item runs */
			if
			:: DIE
			:: atomic { assert(ROOM); rpos[s * R + h % R] = p; ritem[s * R + h % R] = i; rjob[s * R + h % R] = owned[p] };
				if
				:: DIE
				:: atomic { h++; head[s] = h; i++ }
				fi
			fi
		:: else -> break
		od;
		if
		:: DIE
#ifdef BUG_DONE_ALWAYS
		:: word[p] = DONE
#else
#ifdef BUG_NO_DONE
		:: skip
#else
		:: atomic { i < c -> word[p] = DONE } /* the job was closed */
		:: i == c            /* the consumer frees it, or has already */
#endif
#endif
		fi;
		atomic { i = 0; c = 0; f = 0; p = 0 };
		goto served;
none:
		idle = 1;
served:
		skip
	od;
die:
	atomic { me = 0; vg = 0; vf = 0; rs = 0; cur = 0; tl = 0; c = 0; i = 0; h = 0; p = 0; f = 0; zombie[s] = 1 };
	if
	:: start[s] -> start[s] = 0; goto again
	:: over
	:: ORPHANED
	fi;
quit:
	skip
}

proctype service()
{
	byte s;
	{ do
	:: over -> break
	:: zombie[0] -> s = 0; goto notice
	:: zombie[1] -> s = 1;
notice:
		member[s] = 0;
		deaths++;
		atomic { newest++; member[s] = newest; inc[s] = newest; zombie[s] = 0; start[s] = 1; s = 0 }
	od } UNLESS_GONE
}

byte fin[N], settled, nxt, seen, alive[W], high;
#define BUSY(p) (cnt[p] != 0)
#define DEAD(o) ((o) <= high && (o) != alive[0] && (o) != alive[1])
#define ENDED(p) (PHASE(word[p]) != CLAIMED || DEAD(OWNER(word[p])))
#define GONE(p) (PHASE(word[p]) != CLAIMED || (OWNER(word[p]) != member[0] && OWNER(word[p]) != member[1]))

inline FREE_POSITION(p)
{
	base[p] = 0; cnt[p] = 0; fin[p] = 0; owned[p] = 0 /* its word stays */
}

inline ROSTER()
{
	atomic { alive[0] = member[0]; alive[1] = member[1]; high = newest }
}

inline DRAIN(s)
{
	atomic {
		p = rpos[s * R + rd[s] % R]; v = ritem[s * R + rd[s] % R];
		assert(rjob[s * R + rd[s] % R] == j);
		rpos[s * R + rd[s] % R] = 0; ritem[s * R + rd[s] % R] = 0; rjob[s * R + rd[s] % R] = 0;
		rd[s] = rd[s] + 1;
		if
		:: fin[p] < cnt[p] && v == fin[p] ->
			v = base[p] + fin[p];
			assert(!delivered[v] && !failed[v]);
			delivered[v] = 1; settled++; fin[p]++;
			if
			:: fin[p] == cnt[p] -> FREE_POSITION(p)
			:: else
			fi
		:: else ->           /* distrust: the worker is killed */
#ifdef BUG_STRICT
			assert(false)
#else
			assert(closed)   /* "After close a chunk may be given up while its last record is on the way" */
#endif
		fi;
		p = 0; v = 0
	}
}

inline DRAIN_ALL()
{
	do
	:: rd[0] < head[0] -> DRAIN(0)
	:: rd[0] == head[0] -> break
	od;
	do
	:: rd[1] < head[1] -> DRAIN(1)
	:: rd[1] == head[1] -> break
	od
}

proctype consumer()
{
	byte j, p, v, t;
	bit rearmed;
	{ skip;
open_job:
	/* in any order save that the generation is last; no worker looks at the function before its claim, or before the generation */
	j++;
#ifdef BUG_GENERATION_FIRST
	atomic { open = j; generation++ };
	atomic { function = j; closed = 0 };
	tail = 0;
#else
	tail = 0;
	atomic { function = j; closed = 0 };
	atomic { open = j; generation++ };
#endif
	atomic { nxt = 0; settled = 0; seen = deaths;
		for (p : 0 .. T - 1) { delivered[p] = 0; failed[p] = 0 };
		p = 0; t = 0 };
	do
	:: j == 1 -> break           /* closed at any time */
	:: settled == T -> break
	:: atomic { nxt < T && (!BUSY(0) || !BUSY(1)) -> skip }; /* refill */
		do
		:: atomic { nxt < T && (!BUSY(0) || !BUSY(1)) ->
				do
				:: BUSY(t % N) -> t++
				:: else -> break
				od;
				p = t % N; v = nxt; nxt = (T - nxt < CHUNK -> T : nxt + CHUNK);
				base[p] = v; cnt[p] = nxt - v; fin[p] = 0; owned[p] = j;
				word[p] = ARMED; t++; p = 0; v = 0
			}
		:: tail != t && (nxt == T || (BUSY(0) && BUSY(1))) -> break
		od;
		tail = t
	:: settled < T && rd[0] < head[0] -> DRAIN(0)
	:: settled < T && rd[1] < head[1] -> DRAIN(1)
	:: settled < T && seen != deaths ->
		seen = deaths;
		ROSTER();
		DRAIN_ALL();
		do
		:: atomic { p < N && BUSY(p) && PHASE(word[p]) == CLAIMED && DEAD(OWNER(word[p])) ->
				failed[base[p] + fin[p]] = 1; settled++; fin[p]++;
				if
				:: fin[p] < cnt[p] -> base[p] = base[p] + fin[p]; cnt[p] = cnt[p] - fin[p]; fin[p] = 0; word[p] = ARMED; rearmed = 1
				:: else -> FREE_POSITION(p)
				fi;
				p++
			};
			if
			:: rearmed -> atomic { rearmed = 0; rescan++ }
			:: else
			fi
		:: atomic { p < N && !(BUSY(p) && PHASE(word[p]) == CLAIMED && DEAD(OWNER(word[p]))) -> p++ }
		:: p == N -> break
		od;
		atomic { p = 0; alive[0] = 0; alive[1] = 0; high = 0 }
	od;
	/* close */
	assert(j == 1 || settled == T);
	closed = 1;
	do
#ifdef BUG_CLOSE_BY_STORE
	:: p < N && BUSY(p) && PHASE(word[p]) == ARMED -> atomic { word[p] = FREE; FREE_POSITION(p); p++ }
#else
#ifdef BUG_CLOSE_LEAVES
	:: atomic { p < N && BUSY(p) && PHASE(word[p]) == ARMED -> base[p] = 0; cnt[p] = 0; fin[p] = 0; p++ }
#else
	:: atomic { p < N && BUSY(p) && PHASE(word[p]) == ARMED -> word[p] = FREE; FREE_POSITION(p); p++ }
#endif
#endif
	:: atomic { p < N && !(BUSY(p) && PHASE(word[p]) == ARMED) -> p++ }
	:: p == N -> p = 0; break
	od;
	/* finished_after_close, tried again when there is something new */
#ifndef BUG_NO_WAIT
	do
	:: !BUSY(0) && !BUSY(1) -> break
	:: (BUSY(0) && GONE(0)) || (BUSY(1) && GONE(1)) || rd[0] < head[0] || rd[1] < head[1] ->
		ROSTER();
		DRAIN_ALL();
		do
		:: atomic { p < N ->
				if
				:: BUSY(p) && ENDED(p) -> FREE_POSITION(p)
				:: else
				fi;
				p++
			}
		:: p == N -> p = 0; break
		od;
#ifndef BUG_NO_LAST_DRAIN
		if
		:: !BUSY(0) && !BUSY(1) -> DRAIN_ALL()
		:: else
		fi;
#endif
		atomic { alive[0] = 0; alive[1] = 0; high = 0 }
	od;
#endif
	atomic {
		open = 0;
		assert(rd[0] == head[0] && rd[1] == head[1]); /* nothing is left in the rings for the next job */
		if
		:: j == 1 -> goto open_job
		:: else
		fi;
		for (p : 0 .. T - 1) { assert(delivered[p] + failed[p] == 1) };
		over = 1
	} } UNLESS_GONE
}

init
{
	atomic {
		inc[0] = 1; inc[1] = 2; member[0] = 1; member[1] = 2; newest = 2;
		select(kills : 0 .. DEATHS); /* how many of the deaths are spent already */
		RUN_KILLER;
		run worker(0); run worker(1); run service(); run consumer()
	}
}
