/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Growth of the boards of submit (docs/design/001-claims-and-rings.md, "Boards: claims"): boards of 1, 2 and 4 entries, two workers that may
 * be killed at any step, a parent that never blocks, one service thread.
 *
 * Checked: every task is done or lost exactly once; a lost one was claimed by a worker that died; all tasks are settled in the end (else
 * the state is an invalid end state: an armed entry that no cursor will reach).
 *
 * RETRY: a task lost with its worker is armed again, once, in the newest board.
 * REPLACE_FIRST: the new worker runs before the words of the dead one are settled.
 */
#ifndef T
#define T 3
#endif
#ifndef DEATHS
#define DEATHS 1
#endif
#define B 3                  /* boards 0, 1, 2 with 1 << b entries; entry e of board b is at (1 << b) - 1 + e */
#define SIZE(b) (1 << (b))
#define AT(b, i) (SIZE(b) - 1 + (i) % SIZE(b))
#define NONE 15

#define FREE 0
#define ARMED 1
#define CLAIMED 2
#define DONE 3
#define LOST 4
#define MK(t, o, f) ((t) * 64 + (o) * 8 + (f))
#define PHASE(w) ((w) & 7)
#define OWNER(w) (((w) >> 3) & 7)
#define TICKET(w) ((w) >> 6)

short word[7];
byte task[7];
byte tail[B], final[B];      /* final tail of a board that has a successor */
byte last_board;             /* the newest board */
byte inc[2], next_inc = 3, kills;
bit zombie[2], start[2], over;
byte settled;
bit done[T], lost[T], ran[T], again[T];
byte tick = 1;               /* arms are under one lock of the parent */
bit lock;

#define DIE kills < DEATHS && !over -> goto die

proctype worker(byte s)
{
	byte me, b, cur, k;
	short w;
again_:
	atomic {
		me = inc[s];
#ifdef BUG_START_NEWEST
		b = last_board;
#else
		b = 0;               /* a new worker begins at the oldest board that may hold an armed entry */
#endif
		cur = 0
	};
	do
	:: over -> goto quit
	:: DIE
	/* "a worker goes on to the next board when its cursor has reached the final tail of the old one": one word that holds the tail */
#ifdef BUG_FLAG_AFTER_TAIL
	:: atomic { cur >= tail[b] -> skip };
		if
		:: DIE
		:: over -> goto quit
		:: atomic { final[b] != NONE -> b++; cur = 0 }
		:: tail[b] > cur && final[b] == NONE
		fi
#else
	:: atomic { final[b] != NONE && cur >= final[b] -> b++; cur = 0 }
#endif
	:: atomic { cur < tail[b] ->
			if
			:: cur + SIZE(b) < tail[b] -> cur = tail[b] - SIZE(b)
			:: else
			fi
		};
		if
		:: DIE
		:: atomic { w = word[AT(b, cur)];
				if
				:: PHASE(w) == ARMED
				:: else -> w = 0; goto next
				fi
			}
		fi;
		if
		:: DIE
		:: atomic {
				if
				:: word[AT(b, cur)] == w -> word[AT(b, cur)] = MK(TICKET(w), me, CLAIMED); k = task[AT(b, cur)]
				:: else -> w = 0; goto next
				fi
			};
			assert(!done[k] && !lost[k]); /* the task runs */
			if
			:: DIE
			:: atomic { word[AT(b, cur)] = MK(TICKET(w), me, DONE); done[k] = 1; settled++ }
			fi
		fi;
next:
		atomic { cur++; w = 0; k = 0 }
	od;
die:
	atomic { kills++; me = 0; cur = 0; b = 0; w = 0; k = 0; zombie[s] = 1 };
	if
	:: start[s] -> start[s] = 0; goto again_
	:: over
	fi;
quit:
	skip
}

/* arms task k: a free position at or after tail, else a board of twice the size */
inline ARM(k)
{
	atomic { !lock -> lock = 1; bb = last_board; t = tail[bb]; n = 0;
		do
		:: n < SIZE(bb) && PHASE(word[AT(bb, t)]) != FREE -> t++; n++
		:: else -> break
		od;
		isfull = (n == SIZE(bb))
	};
	if
	:: isfull ->               /* "A board that is full is followed by one of twice the size": made first, then the final tail is told */
		assert(bb + 1 < B);
#ifdef BUG_NO_SEAL
		atomic { last_board = bb + 1; bb = bb + 1; t = 0; isfull = 0 };
		final[bb - 1] = tail[bb - 1] + 1;
#else
		final[bb] = tail[bb];
		atomic { last_board = bb + 1; bb = bb + 1; t = 0; isfull = 0 }
#endif
	:: else
	fi;
	task[AT(bb, t)] = k;
	word[AT(bb, t)] = MK(tick, 0, ARMED);
	atomic { tail[bb] = t + 1; tick++; t = 0; bb = 0; n = 0; lock = 0 }
}

proctype parent()
{
	byte k, t, bb, n;
	bit isfull;
	do
	:: k < T -> ARM(k); k++
	/* the result has been taken: the position is free again */
	:: atomic { settled < T && PHASE(word[0]) == DONE -> word[0] = 0; task[0] = 0 }
	:: atomic { settled < T && PHASE(word[1]) == DONE -> word[1] = 0; task[1] = 0 }
#ifdef BUG_ARM_OLD
	:: atomic { k < T && last_board > 0 && PHASE(word[0]) == FREE && !lock -> task[0] = k; word[0] = MK(tick, 0, ARMED); tick++; tail[0] = tail[0] + 1; k++ }
#endif
	:: settled == T -> break
	od;
	over = 1
}

proctype service()
{
	byte s, p, v, t, bb, n, d;
	bit isfull;
	do
	:: over -> break
	:: zombie[0] -> s = 0; goto notice
	:: zombie[1] -> s = 1;
notice:
		d = inc[s];
#ifdef REPLACE_FIRST         /* the new worker may pass the entries before the words of the dead are settled */
		atomic { zombie[s] = 0; inc[s] = next_inc; next_inc++; start[s] = 1 };
#endif
		do
		:: atomic { p < 7 && PHASE(word[p]) == CLAIMED && OWNER(word[p]) == d ->
				v = task[p];
				assert(!done[v] && !lost[v]);
				if
#ifdef RETRY
				:: !again[v] -> again[v] = 1; isfull = 1
#endif
				:: else -> lost[v] = 1; settled++; word[p] = MK(TICKET(word[p]), 0, LOST)
				fi
			};
#ifdef RETRY
			if
			:: isfull ->
				isfull = 0;
#ifdef BUG_REARM_IN_PLACE
				word[p] = MK(tick, 0, ARMED);
#else
				ARM(v);      /* in the newest board; only then the old entry is given up */
				word[p] = 0;
#endif
			:: else
			fi;
#endif
			v = 0
		:: atomic { p < 7 && !(PHASE(word[p]) == CLAIMED && OWNER(word[p]) == d) -> p++ }
		:: p == 7 -> break
		od;
#ifndef REPLACE_FIRST
		atomic { zombie[s] = 0; inc[s] = next_inc; next_inc++; start[s] = 1 };
#endif
		atomic { p = 0; s = 0; d = 0 }
	od
}

init
{
	atomic {
		final[0] = NONE; final[1] = NONE; final[2] = NONE;
		inc[0] = 1; inc[1] = 2;
		select(kills : 0 .. DEATHS); /* how many of the deaths are spent already */
		run worker(0); run worker(1); run parent(); run service()
	}
}
