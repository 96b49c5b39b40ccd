/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A map job (docs/design/001-claims-and-rings.md, "Boards: claims" and "Rings: results of a map"; drover/shm/board.h,
 * drover/pool/worker_loop.cc, map_arming.cc, map_deaths.cc): two workers that may be killed at any step, one consumer that arms, drains
 * and buries the dead, one service thread that reaps, gives notice and replaces.
 *
 * Every access to shared memory is a step of its own; a CAS is one step. A kill is an escape that is possible before every step.
 *
 * Checked: an item is delivered or failed exactly once and never both (assertions in DELIVER and FAIL); a published item is never
 * failed nor armed again (ghost `pub`); an item that is settled or that another one runs is not run; how a worker ended is known before an item fails with it; the
 * job ends: a state without a next step before the end (an armed entry that all cursors have passed, say) is an invalid end state, and
 * all counters only grow, so there is no cycle.
 *
 * Mutations: see README.md.
 */
#ifndef T
#define T 3                  /* inputs */
#endif
#ifndef CHUNK
#define CHUNK 1              /* consecutive inputs an entry */
#endif
#ifndef RETRIES
#define RETRIES 0
#endif
#ifndef DEATHS
#define DEATHS 2
#endif
#define N 2                  /* positions of the board */
#define W 2                  /* worker slots */
#ifndef WINDOW
#define WINDOW 2             /* items armed and not yet settled */
#endif
#ifndef R
#define R WINDOW             /* records a ring holds: nobody waits for room */
#endif

#define ARMED 1
#define CLAIMED 2
#include "parent.pml"

/* the state word: owner | phase; a map sets no flags */
#define MK(o, f) ((o) * 4 + (f))
#define PHASE(w) ((w) & 3)
#define OWNER(w) ((w) >> 2)

byte word[N];
byte base[N], cnt[N];        /* the task of an entry: first item, number of items */
byte tail, rescan;
byte head[W], rd[W];         /* published by the worker; given back by the consumer */
byte rpos[W * R], rval[W * R]; /* records: position, item */

byte inc[W];                 /* incarnation that runs in a slot */
bit zombie[W], start[W];
byte kills;
byte member[W], newest;      /* the crew's table, 0: none; under its mutex */
byte deaths;
bit known[8];                /* how this incarnation ended is on record */
bit over;

bit delivered[T], failed[T], pub[T], running[T]; /* ghosts */

/* kill -9: possible before every step; what happens between two shared steps of its own nobody else can see */
#define DIE atomic { MAY_DIE && !over -> kills++; goto die } \
	:: ORPHANED -> goto quit
#ifdef BUG_NOTICE_EARLY
bit doomed;                  /* worker 0, and one of the deaths is its */
#define MAY_DIE (kills < DEATHS || (doomed && s == 0))
#else
#define MAY_DIE (kills < DEATHS)
#endif

proctype worker(byte s)
{
	byte me, cur, tl, rs, b, c, h, p;
again:
	/* "a replaced worker gets a new [incarnation]"; "The replacement continues the ring at the published head" */
	atomic {
		me = inc[s];
#ifdef BUG_RING_RESTART
		h = rd[s];
#else
		h = head[s];
#endif
		rs = rescan;             /* before the cursor's first look */
#ifdef BUG_CURSOR_AT_TAIL
		cur = tail; tl = tail
#else
		cur = 0; tl = 0          /* far behind: jumps to tail - N */
#endif
	};
	do
	:: over -> goto quit
	:: DIE
	/* has_work, and refresh: what has_work has seen stays true until then, and a serve without it would see nothing. Sleeping is
	   in sleep.pml. The refresh after a claim makes no difference here: the one at the next serve sees the same and more. */
	:: atomic { tail != cur || rescan != rs ->
			if
			:: rescan != rs ->
#ifndef BUG_RESCAN_LATE
				rs = rescan;
#endif
				cur = 0; tl = 0
			:: else
			fi
		};
scan:
		if
		:: cur == tl ->          /* BoardCursor::refresh: the tail is read anew when the one last seen is reached */
			if
			:: DIE
			:: atomic {
					tl = tail;
					if               /* "A cursor more than N behind tail jumps to tail - N" */
					:: cur + N < tl -> cur = tl - N
					:: cur == tl -> goto none
					:: else
					fi
				}
			fi
		:: else
		fi;
		if
		:: DIE
		/* Without tickets a load and a CAS that is tried again while the phase is armed are one step: passed over at the
		   load that saw another phase, claimed at the CAS that succeeded, whatever task has become armed in between. */
		:: atomic {
				p = cur % N; cur++;
				if
				:: PHASE(word[p]) == ARMED
				:: else -> p = 0; goto scan
				fi;
#ifdef BUG_NO_CAS
			}
		fi;
		if
		:: DIE
		:: atomic {
#endif
				word[p] = MK(me, CLAIMED);
				b = base[p]; c = cnt[p]
			}
		fi;
		assert(c > 0 && b + c <= T); /* a whole task, also if the parent died while it armed */
		do                       /* "Items of a chunk run in order" */
		:: c > 0 ->
			d_step { assert(!delivered[b] && !failed[b] && !running[b]); running[b] = 1 }; /* the item runs */
			if
			:: DIE
#ifdef BUG_PUBLISH_FIRST
			:: atomic { assert(h - rd[s] < R); h++; head[s] = h };
				rpos[s * R + (h - 1) % R] = p; rval[s * R + (h - 1) % R] = b;
#else
			:: atomic {
					assert(h - rd[s] < R); /* the window sees to it that there is room */
					rpos[s * R + h % R] = p; rval[s * R + h % R] = b /* "The worker writes the record, ..." */
				};
				if
				:: DIE
				:: atomic { h++; head[s] = h; pub[b] = 1 } /* "... then publishes head (release)" */
				fi;
#endif
			fi;
			atomic { running[b] = 0; b++; c-- }
		:: else -> break
		od;
		atomic { b = 0; p = 0 };
#ifdef BUG_RESCAN_LATE
		goto scan;
#endif
none:
#ifdef BUG_RESCAN_LATE           /* what it has compared is noted only after the last look at the tail */
		rs = rescan
#else
		skip
#endif
	od;
die:
	atomic {
		if
		:: c > 0 -> running[b] = 0
		:: else
		fi;
		me = 0; cur = 0; tl = 0; rs = 0; p = 0; b = 0; c = 0; h = 0; zombie[s] = 1
	};
	if
	:: start[s] -> start[s] = 0; goto again
	:: over
	:: ORPHANED
	fi;
quit:
	skip
}

/* reaps, puts the end on record, takes it off the roster, "raises the deaths counter", replaces; each under a mutex of its own */
proctype service()
{
	byte s;
	{ do
	:: over -> break
#ifdef BUG_NOTICE_EARLY
	:: atomic { deaths == 0 && kills < DEATHS -> kills++; doomed = 1; s = 0; goto notice }
#endif
	:: zombie[0] -> s = 0; goto notice
	:: zombie[1] -> s = 1;
notice:
#ifdef BUG_DEATH_UNKNOWN         /* off the roster before the record of how it ended */
		member[s] = 0;
		known[inc[s]] = 1;
#else
		known[inc[s]] = 1;
		member[s] = 0;
#endif
		deaths++;
		atomic { newest++; member[s] = newest };
		atomic { zombie[s] || over -> inc[s] = newest; zombie[s] = 0; start[s] = 1;
#ifdef BUG_NOTICE_EARLY
			doomed = 0;
#endif
			s = 0
		}
	od } UNLESS_GONE
}

/* private to the consumer, global only so that inlines can use it */
byte nxt, settled, seen, fin[N], att[N];
byte alive[W], high;         /* the roster */

#define BUSY(p) (cnt[p] != 0)
#ifdef BUG_NEWER_DEAD
#define DEAD(o) ((o) != alive[0] && (o) != alive[1])
#else
#define DEAD(o) ((o) <= high && (o) != alive[0] && (o) != alive[1])
#endif

inline FREE_POSITION(p)
{
	base[p] = 0; cnt[p] = 0; fin[p] = 0; att[p] = 0 /* its word stays claimed */
}

/* one record: read, count, deliver; "a position whose count is complete is free again"; then gives the room back */
inline DRAIN(s)
{
	atomic {
		p = rpos[s * R + rd[s] % R]; v = rval[s * R + rd[s] % R];
		rpos[s * R + rd[s] % R] = 0; rval[s * R + rd[s] % R] = 0;
		assert(PHASE(word[p]) == CLAIMED && v == base[p] + fin[p] && fin[p] < cnt[p]);
		assert(!delivered[v] && !failed[v]); /* DELIVER */
		delivered[v] = 1; settled++; fin[p]++; att[p] = 0;
		if
		:: fin[p] == cnt[p] -> FREE_POSITION(p)
		:: else
		fi;
		rd[s] = rd[s] + 1; p = 0; v = 0 /* given back later, in truth: the rings have room for that too */
	}
}

inline ROSTER()
{
	atomic { alive[0] = member[0]; alive[1] = member[1]; high = newest }
}

proctype consumer()
{
	byte t, p, v;                /* t: positions passed; told to the workers when all are armed */
	bit again;
	{ do
	:: settled == T -> break
	/* refill: "it finds a free position at or after tail" */
	:: atomic { nxt < T && nxt - settled < WINDOW && (!BUSY(0) || !BUSY(1)) -> skip };
		do
		:: atomic { nxt < T && nxt - settled < WINDOW && (!BUSY(0) || !BUSY(1)) ->
#ifndef BUG_ARM_BUSY
				do
				:: BUSY(t % N) -> t++ /* "Positions whose task still runs are skipped" */
				:: else -> break
				od;
#endif
				p = t % N;
				v = nxt;
				nxt = (WINDOW - (nxt - settled) < CHUNK -> settled + WINDOW : nxt + CHUNK);
				nxt = (nxt < T -> nxt : T);
#ifndef BUG_WORD_FIRST
				base[p] = v; cnt[p] = nxt - v; fin[p] = 0; v = 0 /* "writes the task, ..." */
#endif
			};
#ifdef BUG_TAIL_FIRST
			tail = t + 1;
#endif
			word[p] = ARMED;           /* "... stores the state word (release), ..." */
#ifdef BUG_WORD_FIRST
			base[p] = v; cnt[p] = nxt - v; fin[p] = 0;
#endif
			atomic { t++; p = 0; v = 0 }
		:: tail != t -> break          /* after one or after many */
#ifdef BUG_TAIL_FIRST
		:: tail == t -> break
#endif
		od;
#ifndef BUG_TAIL_FIRST
		tail = t                       /* "... then stores tail (release)" */
#endif
	:: settled < T && rd[0] < head[0] -> DRAIN(0)
	:: settled < T && rd[1] < head[1] -> DRAIN(1)
	/* bury_the_dead */
	:: settled < T && seen != deaths ->
#ifndef BUG_SEEN_LATE
		seen = deaths;
#endif
#ifndef BUG_LATE_SET
		ROSTER();                      /* "First who is alive, then all that was published, then the claims" */
#endif
#ifndef BUG_NO_DRAIN
		do
		:: rd[0] < head[0] -> DRAIN(0)
		:: rd[0] == head[0] -> break
		od;
		do
		:: rd[1] < head[1] -> DRAIN(1)
		:: rd[1] == head[1] -> break
		od;
#endif
#ifdef BUG_LATE_SET
		ROSTER();
#endif
		do
		:: atomic { p < N && BUSY(p) && PHASE(word[p]) == CLAIMED && DEAD(OWNER(word[p])) ->
				v = base[p] + fin[p];
				assert(fin[p] < cnt[p] && !delivered[v] && !failed[v] && !pub[v]);
				if                     /* lose_chunk: "The first of them was running: it fails or is armed again while retries are left" */
				:: att[p] < RETRIES -> att[p]++
				:: else -> assert(known[OWNER(word[p])]); failed[v] = 1; settled++; att[p] = 0; fin[p]++
				fi;
				if
				:: fin[p] < cnt[p] ->
					assert(!pub[base[p] + fin[p]]);
#ifdef BUG_RESCAN_FIRST
					again = 1
				:: else -> FREE_POSITION(p); p++
				fi;
				v = 0
			};
			if
			:: again ->
				rescan++;
				atomic { again = 0; base[p] = base[p] + fin[p]; cnt[p] = cnt[p] - fin[p]; fin[p] = 0; word[p] = ARMED; p++ }
			:: else
			fi
#else
					/* rearm_rest: in place. The owner is dead: nobody else reads the entry before it is armed. */
					base[p] = base[p] + fin[p]; cnt[p] = cnt[p] - fin[p]; fin[p] = 0; word[p] = ARMED; again = 1
				:: else -> FREE_POSITION(p)
				fi;
				p++; v = 0
			};
			if
			:: again ->
				again = 0;
#ifndef BUG_NO_RESCAN
				rescan++
#endif
			:: else
			fi
#endif
		:: atomic { p < N && !(BUSY(p) && PHASE(word[p]) == CLAIMED && DEAD(OWNER(word[p]))) -> p++ }
		:: p == N -> break
		od;
#ifdef BUG_SEEN_LATE
		seen = deaths;
#endif
		atomic { p = 0; alive[0] = 0; alive[1] = 0; high = 0 }
	od;
	atomic {
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
