/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Results without a value (drover/pool/chunk_call.cc: begin_counting, count_item, publish_count, put_error, end_counting; map_deaths.cc:
 * deliver_progress; crew.cc: on_end): `progress` in the worker's line is the truth, the ring hears of many items at once, what a dead worker had
 * finished and not told the ring is delivered from its line. Workers may be killed at any step, an item may fail with an error.
 *
 * Claims are one step and without cursors, a record is written and published in one step: claims.pml has those.
 *
 * Checked: an item is delivered with its own outcome, or lost, exactly once; a finished item is never lost nor run again; the job ends.
 */
#ifndef T
#define T 3                  /* inputs */
#endif
#ifndef CHUNK
#define CHUNK 2
#endif
#ifndef RETRIES
#define RETRIES 0
#endif
#ifndef DEATHS
#define DEATHS 1
#endif
#ifndef N
#define N 1                  /* positions of the board */
#endif
#ifndef W
#define W 1                  /* worker slots */
#endif
#define R (N * CHUNK)        /* records a ring holds: as many as items may be in flight */
#define INCS (W + DEATHS + 1)

#include "parent.pml"

#define ARMED 1
#define MK(o) (2 * (o))      /* claimed by incarnation o */

byte word[N], base[N], cnt[N];
byte head[W], rd[W];
byte rpos[W * R], rrun[W * R]; /* records: position, number of items (0: one with an error) */
byte progress[W], at[W];     /* the worker's line; at: 0 or 1 + position */

byte inc[W];                 /* incarnation that runs in a slot */
bit zombie[W], start[W], over;
byte kills;
byte member[W], newest, deaths; /* the crew's table, under its mutex */
byte dead_at[INCS], dead_progress[INCS]; /* how this incarnation ended */

#define VALUE 1
#define ERROR 2
byte outcome[T], delivered[T]; /* ghosts: finished, and how; delivered or lost */
#define LOST 3

#define DIE atomic { kills < DEATHS && !over -> kills++; goto die } \
	:: ORPHANED -> goto quit

inline PUBLISH_COUNT()
{
	if
	:: k != i ->
		n = i - k;
		if
		:: DIE
		:: atomic {
				assert(h - rd[s] < R); /* the window sees to it that there is room */
				rpos[s * R + h % R] = p; rrun[s * R + h % R] = n; h++; head[s] = h;
				n = 0; k = i
			}
		fi
	:: else
	fi
}

proctype worker(byte s)
{
	byte me, b, c, p, i, k, h, n; /* i: finished; k: those that the ring has heard of */
again:
	atomic { me = inc[s]; h = head[s] };
	do
	:: over -> goto quit
	:: DIE
	:: atomic {
			if
			:: word[0] == ARMED -> p = 0
#if N > 1
			:: word[1] == ARMED -> p = 1
#endif
			fi;
			word[p] = MK(me); b = base[p]; c = cnt[p]
		};
#ifdef BUG_AT_FIRST
		if
		:: DIE
		:: at[s] = p + 1
		fi;
#endif
		if                   /* begin_counting */
		:: DIE
		:: progress[s] = 0
		fi;
#ifndef BUG_AT_FIRST
		if
		:: DIE
		:: at[s] = p + 1
		fi;
#endif
		do
		:: i < c ->
			assert(!outcome[b + i] && !delivered[b + i]); /* the item runs */
			if
			:: DIE
			:: atomic { i++; progress[s] = i; outcome[b + i - 1] = VALUE }; /* count_item */
				if
				:: PUBLISH_COUNT() /* the caller sleeps */
				:: skip
				fi
			:: skip;         /* put_error */
#ifndef BUG_ERROR_FIRST
				PUBLISH_COUNT();
#endif
#ifdef BUG_PROGRESS_FIRST
				if
				:: DIE
				:: atomic { progress[s] = i + 1; outcome[b + i] = ERROR }
				fi;
#endif
				if
				:: DIE
				:: atomic {
						assert(h - rd[s] < R);
						rpos[s * R + h % R] = p; rrun[s * R + h % R] = 0; h++; head[s] = h;
						outcome[b + i] = ERROR; i++; k = i
					}
				fi;
#ifndef BUG_PROGRESS_FIRST
				if
				:: DIE
				:: progress[s] = i
				fi
#endif
			fi
		:: i == c -> break
		od;
		PUBLISH_COUNT();     /* end_counting */
#ifndef BUG_AT_STAYS
		if
		:: DIE
		:: at[s] = 0
		fi;
#endif
		atomic { b = 0; c = 0; p = 0; i = 0; k = 0 }
	od;
die:
	atomic { me = 0; b = 0; c = 0; p = 0; i = 0; k = 0; h = 0; n = 0; zombie[s] = 1 };
	if
	:: start[s] -> start[s] = 0; goto again
	:: over
	:: ORPHANED
	fi;
quit:
	skip
}

/* Crew::on_end */
proctype service()
{
	byte s;
	{ do
	:: over -> break
	:: atomic { zombie[0] -> s = 0; zombie[0] = 0 };
		goto notice
#if W > 1
	:: atomic { zombie[1] -> s = 1; zombie[1] = 0 };
		goto notice
#endif
notice:
#ifndef BUG_COPY_LATE
		atomic { dead_at[member[s]] = at[s]; dead_progress[member[s]] = progress[s] }; /* a dead one changes neither */
#ifndef BUG_AT_NOT_RESET
		at[s] = 0;
#endif
#endif
		member[s] = 0;
		deaths++;
		atomic { newest++; member[s] = newest };
		atomic { inc[s] = newest; start[s] = 1 };
#ifdef BUG_COPY_LATE
		atomic { dead_at[newest - 1] = at[s]; dead_progress[newest - 1] = progress[s]; at[s] = 0 };
#endif
		s = 0
	od } UNLESS_GONE
}

/* private to the consumer */
byte nxt, settled, seen, fin[N], att[N];
byte alive[W], high;         /* the roster */
#if W > 1
#define DEAD(o) ((o) <= high && (o) != alive[0] && (o) != alive[1])
#else
#define DEAD(o) ((o) <= high && (o) != alive[0])
#endif

/* the next item of position p */
inline SETTLE(how)
{
	v = base[p] + fin[p];
	assert(fin[p] < cnt[p] && !delivered[v] && outcome[v] == (how == LOST -> 0 : how));
	delivered[v] = how; settled++; fin[p]++; v = 0
}
inline FREE_IF_DONE()
{
	if
	:: fin[p] == cnt[p] -> base[p] = 0; cnt[p] = 0; fin[p] = 0; att[p] = 0
	:: else
	fi
}
inline DRAIN(s)
{
	atomic {
		p = rpos[s * R + rd[s] % R]; r = rrun[s * R + rd[s] % R];
		rpos[s * R + rd[s] % R] = 0; rrun[s * R + rd[s] % R] = 0;
		assert(word[p] > ARMED && r <= cnt[p] - fin[p]);
		att[p] = 0;
		if
		:: r == 0 -> SETTLE(ERROR)
		:: else ->
			do
			:: r > 0 -> SETTLE(VALUE); r--
			:: else -> break
			od
		fi;
		FREE_IF_DONE();
		rd[s] = rd[s] + 1; p = 0
	}
}

proctype consumer()
{
	byte p, v, r, o;
	{ do
	:: settled == T -> break
	:: atomic { nxt < T && (cnt[0] == 0
#if N > 1
			|| cnt[1] == 0
#endif
			) ->
			p = (cnt[0] == 0 -> 0 : 1);
			base[p] = nxt; cnt[p] = (T - nxt < CHUNK -> T - nxt : CHUNK); nxt = nxt + cnt[p];
			word[p] = ARMED; p = 0
		}
	:: rd[0] < head[0] -> DRAIN(0)
#if W > 1
	:: rd[1] < head[1] -> DRAIN(1)
#endif
	:: settled < T && seen != deaths ->
		seen = deaths;
		atomic { alive[0] = member[0]; high = newest;
#if W > 1
			alive[1] = member[1];
#endif
		};
#ifndef BUG_NO_DRAIN
		do
		:: rd[0] < head[0] -> DRAIN(0)
		:: rd[0] == head[0] -> break
		od;
#if W > 1
		do
		:: rd[1] < head[1] -> DRAIN(1)
		:: rd[1] == head[1] -> break
		od;
#endif
#endif
		do
		:: atomic { p < N ->
				if
				:: cnt[p] != 0 && word[p] > ARMED && DEAD(word[p] / 2) -> /* lose_chunk */
					o = word[p] / 2;
#ifndef BUG_NOT_DELIVERED
					if       /* deliver_progress */
					:: dead_at[o] == p + 1 && dead_progress[o] > fin[p] && dead_progress[o] <= cnt[p] ->
						att[p] = 0;
						r = dead_progress[o] - fin[p];
						do
						:: r > 0 -> SETTLE(VALUE); r--
						:: else -> break
						od
					:: else
					fi;
#endif
					o = 0;
					if
					:: fin[p] < cnt[p] && att[p] < RETRIES -> att[p]++
					:: fin[p] < cnt[p] && att[p] >= RETRIES -> SETTLE(LOST); att[p] = 0
					:: else
					fi;
					FREE_IF_DONE();
					if       /* rearm_rest */
					:: cnt[p] != 0 -> base[p] = base[p] + fin[p]; cnt[p] = cnt[p] - fin[p]; fin[p] = 0; word[p] = ARMED
					:: else
					fi
				:: else
				fi;
				p++
			}
		:: p == N -> break
		od;
		atomic { p = 0; alive[0] = 0; high = 0;
#if W > 1
			alive[1] = 0
#endif
		}
	od;
	atomic {
		for (p : 0 .. T - 1) { assert(delivered[p]) };
		over = 1
	} } UNLESS_GONE
}

init
{
	atomic {
		inc[0] = 1; member[0] = 1; newest = 1;
#if W > 1
		inc[1] = 2; member[1] = 2; newest = 2;
#endif
		select(kills : 0 .. DEATHS); /* how many of the deaths are spent already */
		RUN_KILLER;
		run worker(0);
#if W > 1
		run worker(1);
#endif
		run service(); run consumer()
	}
}
