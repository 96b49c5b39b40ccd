/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A map job (docs/design/001-claims-and-rings.md, "Boards: claims" and "Rings: results of a map"): two workers that may be killed
 * at any step, one consumer that arms, drains and settles deaths, one service thread that reaps, gives notice and replaces.
 *
 * Every access to shared memory is a step of its own; a CAS is one step. A kill is an escape that is possible before every step.
 *
 * Checked: an item is delivered or failed exactly once and never both (assertions in DELIVER and FAIL); a published item is never
 * failed nor armed again (ghost `pub`); an item that is settled is not run; the job ends: a state without a next step before the
 * end (an armed entry that all cursors have passed, say) is an invalid end state, and all counters only grow, so there is no cycle.
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
#ifndef R
#define R 2                  /* records a ring holds */
#endif

#define FREE 0
#define ARMED 1
#define CLAIMED 2
/* the state word: ticket | owner | phase */
#define MK(t, o, f) ((t) * 32 + (o) * 4 + (f))
#define PHASE(w) ((w) & 3)
#define OWNER(w) (((w) >> 2) & 7)
#define TICKET(w) ((w) >> 5)

short word[N];
byte base[N], cnt[N];        /* the task of an entry: first item, number of items */
byte tail;
byte head[W], rd[W];         /* published by the worker; given back by the consumer */
byte rpos[W * R], rval[W * R]; /* records: position, item */

byte inc[W];                 /* incarnation that runs in a slot */
byte next_inc = 1;
bit zombie[W], start[W];
byte kills;
byte deaths, dead_slot[DEATHS + 1], dead_inc[DEATHS + 1];
bit over;

bit delivered[T], failed[T], pub[T]; /* ghosts */
byte tries[T];

/* kill -9: possible before every step; what happens between two shared steps of its own nobody else can see */
#define DIE kills < DEATHS && !over -> goto die

proctype worker(byte s)
{
	byte me, cur, b, c, h;
	short w;
again:
	/* "a replaced worker gets a new [incarnation]"; "The replacement continues the ring at the published head" */
	atomic {
		me = inc[s];
#ifdef BUG_RING_RESTART
		h = rd[s];
#else
		h = head[s];
#endif
#ifdef BUG_CURSOR_AT_TAIL
		cur = tail
#else
		cur = 0                  /* far behind: jumps to tail - N */
#endif
	};
	do
	:: over -> goto quit
	:: DIE
	:: atomic { tail > cur ->    /* "While cursor < tail"; sleeping is in sleep.pml */
			if                   /* "A cursor more than N behind tail jumps to tail - N" */
			:: cur + N < tail -> cur = tail - N
			:: else
			fi
		};
		if
		:: DIE
		:: atomic { w = word[cur % N]; /* "it looks at the entry" */
				if
				:: PHASE(w) == ARMED
				:: else -> w = 0; goto next /* "Anything else ... -> cursor + 1" */
				fi
			}
		fi;
		if
		:: DIE
		:: atomic {              /* "armed -> CAS(armed -> claimed by me); the CAS is the claim"; then reads the task, which stays */
#ifdef BUG_NO_CAS
				word[cur % N] = MK(TICKET(w), me, CLAIMED);
#else
				if
				:: word[cur % N] == w -> word[cur % N] = MK(TICKET(w), me, CLAIMED)
				:: else -> w = 0; goto next /* "a lost CAS -> cursor + 1" (no flags here: only another claim or a new arming) */
				fi;
#endif
				b = base[cur % N]; c = cnt[cur % N]; w = 0
			}
		fi;
		do                       /* "Items of a chunk run in order" */
		:: c > 0 ->
			assert(!delivered[b] && !failed[b]); /* the item runs */
			if
			:: DIE
#ifdef BUG_PUBLISH_FIRST
			:: atomic { h - rd[s] < R -> h++; head[s] = h };
				rpos[s * R + (h - 1) % R] = cur % N; rval[s * R + (h - 1) % R] = b;
#else
			:: atomic { h - rd[s] < R -> /* room in the ring */
					rpos[s * R + h % R] = cur % N; rval[s * R + h % R] = b /* "The worker writes the record, ..." */
				};
				if
				:: DIE
				:: atomic { h++; head[s] = h; pub[b] = 1 } /* "... then publishes head (release)" */
				fi;
#endif
			fi;
			atomic { b++; c-- }
		:: else -> b = 0; break
		od;
next:
		cur++
	od;
die:
	atomic { kills++; me = 0; cur = 0; w = 0; b = 0; c = 0; h = 0; zombie[s] = 1 };
	if
	:: start[s] -> start[s] = 0; goto again
	:: over
	fi;
quit:
	skip
}

/* "the service thread reaps it (so it writes no more), then raises the job's deaths counter"; then replaces it */
proctype service()
{
	byte s;
	do
	:: over -> break
#ifdef BUG_NOTICE_EARLY
	:: deaths == 0 -> s = 0; goto notice
#endif
	:: zombie[0] -> s = 0; goto notice
	:: zombie[1] -> s = 1;
notice:
		atomic { dead_slot[deaths] = s; dead_inc[deaths] = inc[s]; deaths++ };
		atomic { zombie[s] || over -> zombie[s] = 0; inc[s] = next_inc; next_inc++; start[s] = 1; s = 0 }
	od
}

/* private to the consumer, global only so that inlines can use it */
byte nxt, settled, seen, qn, qb[T], qc[T], fin[N];

inline REQUEUE(first, n)
{
	qb[qn] = first; qc[qn] = n; qn++
}

/* one record: read, count, deliver; "a position whose count is complete is free again"; then gives the room back */
inline DRAIN(s)
{
	atomic {
		p = rpos[s * R + rd[s] % R]; v = rval[s * R + rd[s] % R];
		rpos[s * R + rd[s] % R] = 0; rval[s * R + rd[s] % R] = 0;
		assert(PHASE(word[p]) == CLAIMED && v == base[p] + fin[p] && fin[p] < cnt[p]);
		assert(!delivered[v] && !failed[v]); /* DELIVER */
		delivered[v] = 1; settled++; fin[p]++;
		if
		:: fin[p] == cnt[p] -> word[p] = MK(0, 0, FREE); base[p] = 0; cnt[p] = 0; fin[p] = 0
		:: else
		fi;
		p = 0; v = 0
	};
	rd[s] = rd[s] + 1
}

proctype consumer()
{
	byte t, p, v, n, ds, di, h;
	do
	:: settled == T -> break
	/* "it finds a free position at or after tail" */
	:: atomic { settled < T && (nxt < T || qn > 0) && (PHASE(word[0]) == FREE || PHASE(word[1]) == FREE) ->
			t = tail;
#ifndef BUG_ARM_BUSY
			do
			:: PHASE(word[t % N]) != FREE -> t++ /* "Positions whose task still runs are skipped" */
			:: else -> break
			od;
#endif
			p = t % N;
			if
			:: qn > 0 -> qn--; v = qb[qn]; n = qc[qn]; qb[qn] = 0; qc[qn] = 0
			:: else -> v = nxt; n = (T - nxt < CHUNK -> T - nxt : CHUNK); nxt = nxt + n
			fi;
#ifndef BUG_WORD_FIRST
			base[p] = v; cnt[p] = n; fin[p] = 0; v = 0; n = 0 /* "writes the task, ..." */
#endif
		};
#ifdef BUG_TAIL_FIRST
		tail = t + 1;
#endif
		word[p] = MK(t + 1, 0, ARMED); /* "... stores the state word (release), ..." */
#ifdef BUG_WORD_FIRST
		base[p] = v; cnt[p] = n; fin[p] = 0;
#endif
		atomic {
#ifndef BUG_TAIL_FIRST
			tail = t + 1;              /* "... then stores tail (release)" */
#endif
			t = 0; p = 0; v = 0; n = 0
		}
	:: settled < T && rd[0] < head[0] -> DRAIN(0)
	:: settled < T && rd[1] < head[1] -> DRAIN(1)
	:: atomic { settled < T && seen < deaths ->
			/* the dead are those of the notice, known before the ring is drained */
			ds = dead_slot[seen]; di = dead_inc[seen]; dead_slot[seen] = 0; dead_inc[seen] = 0
		};
#ifndef BUG_SCAN_FIRST
		h = head[ds];                  /* "drains that ring to its published head, ..." */
		do
		:: rd[ds] < h -> DRAIN(ds)
		:: else -> break
		od;
#endif
		do                             /* "... then scans the board for words owned by the dead incarnation" */
		:: atomic { p < N ->
				if
#ifdef BUG_LATE_SET                    /* dead is who is not in the table of the living at the time of the scan */
				:: PHASE(word[p]) == CLAIMED && (OWNER(word[p]) == di || (OWNER(word[p]) == inc[ds] && zombie[ds])) ->
#else
				:: PHASE(word[p]) == CLAIMED && OWNER(word[p]) == di ->
#endif
					v = base[p] + fin[p]; n = cnt[p] - fin[p];
					assert(n > 0 && !delivered[v] && !failed[v] && !pub[v]); /* FAIL */
					if                 /* "The first of them was running: it fails or is armed again while retries are left" */
					:: tries[v] < RETRIES -> tries[v]++
					:: else -> failed[v] = 1; settled++; v++; n--
					fi;
					if                 /* "the others had not begun and are armed again": at or after tail, like any */
					:: n > 0 ->
						assert(!pub[v]);
#ifdef BUG_REARM_IN_PLACE
						base[p] = v; cnt[p] = n; fin[p] = 0; word[p] = MK(31, 0, ARMED)
#else
						qb[qn] = v; qc[qn] = n; qn++;
						word[p] = MK(0, 0, FREE); base[p] = 0; cnt[p] = 0; fin[p] = 0
#endif
					:: else -> word[p] = MK(0, 0, FREE); base[p] = 0; cnt[p] = 0; fin[p] = 0
					fi
				:: else
				fi;
				p++; v = 0; n = 0
			}
		:: else -> break
		od;
		atomic { seen++; p = 0; ds = 0; di = 0; h = 0 }
	od;
	atomic {
		for (p : 0 .. T - 1) { assert(delivered[p] + failed[p] == 1) };
		over = 1
	}
}

init
{
	atomic {
		inc[0] = 1; inc[1] = 2; next_inc = 3;
		select(kills : 0 .. DEATHS); /* how many of the deaths are spent already */
		run worker(0); run worker(1); run service(); run consumer()
	}
}
