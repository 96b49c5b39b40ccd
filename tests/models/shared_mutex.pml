/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The shared mutex (drover/sync/shared_mutex.*): W writers and READERS readers with PLACES places, each of which may be killed at any step. A reader
 * locks a second time while it reads (NEST). The gate is a lock word (lock_word.pml), taken in one step here; sleeping and waking are left
 * out: who waits looks again, as it does after each slice.
 *
 * A reader takes any free place and leaves any of its own: the code has an order in which it looks, which differs from thread to thread.
 *
 * Checked: a living writer is inside alone; a writer that dies inside is reported to the next one at the gate, and nothing else is reported;
 * when nothing moves any more, all who live are through.
 */
#ifndef WRITERS
#define WRITERS 1
#endif
#ifndef READERS
#define READERS 2
#endif
#ifndef PLACES
#define PLACES 2
#endif
#ifndef DEATHS
#define DEATHS 1
#endif
#ifndef NEST
#define NEST 1
#endif
#define ALL (WRITERS + READERS)

byte gate;                      /* who holds it; 0: free */
bit passes;                     /* its death is nothing to report */
byte place[PLACES], nested[PLACES];

bit dead[ALL + 1], writes[ALL + 1], reads[ALL + 1];
bit owed;                       /* a writer died inside, and nobody was told */
byte kills, through;

#define DIE atomic { kills < DEATHS -> kills++; goto die }
#define GATE_OPENS (gate == 0 || dead[gate])

inline take_gate()
{
	died = (gate != 0 && !passes);
	assert(died == owed);       /* all that is to report, and nothing else */
	gate = me;
	passes = !died
}

/* leaves a place of mine, or takes away one of its locks */
inline leave()
{
	if
	:: DIE
	:: atomic { place[0] == me && nested[0] > 0 -> nested[0]-- }
	:: atomic { place[0] == me && nested[0] == 0 -> place[0] = 0 }
#if PLACES > 1
	:: atomic { place[1] == me && nested[1] > 0 -> nested[1]-- }
	:: atomic { place[1] == me && nested[1] == 0 -> place[1] = 0 }
#endif
	fi
}

proctype writer(byte me)
{
	byte i;
	bit died;

again:
	if
	:: DIE
	:: atomic { GATE_OPENS -> take_gate() }
	fi;
	if
	:: died ->                  /* told, and lets go */
		if
		:: DIE
		:: atomic { owed = 0; gate = 0; passes = 0; died = 0 }
		fi;
		goto again
	:: else
	fi;
#ifdef BUG_GUARDS_EARLY
	passes = 0;
#endif
	i = 0;
	do                          /* no place may be taken: looked at one by one, from the first again after each wait */
	:: i == PLACES -> break
	:: i < PLACES ->
		if
		:: DIE
		:: atomic { place[i] == 0 -> i++ }
		:: atomic { place[i] != 0 -> skip };
			if
			:: DIE
			:: atomic { place[i] == 0 -> i = 0 }
#ifndef BUG_NO_FORGET
			:: atomic { place[i] != 0 && dead[place[i]] -> place[i] = 0; nested[i] = 0; i = 0 }
#endif
			fi
		fi
	od;
	i = 0;
	if
	:: DIE
	:: atomic { passes = 0; writes[me] = 1;
		for (i : 1 .. ALL) { assert(i == me || dead[i] || (!writes[i] && !reads[i])) };
		i = 0 }
	fi;
	if
	:: atomic { kills < DEATHS -> kills++; owed = 1; goto die }
	:: atomic { writes[me] = 0; gate = 0; passes = 0 }
	fi;
	atomic { through++; goto end };
die:
	atomic { dead[me] = 1; writes[me] = 0; died = 0; i = 0; through++ };
end:
	skip
}

proctype reader(byte me)
{
	bit died, inner;            /* inner: it reads already, and locks again */
	byte mine;

again:
	if                          /* past an open gate ... */
	:: DIE
	:: atomic { gate == 0 -> skip };
		if
		:: DIE
		:: atomic { place[0] == 0 -> place[0] = me; mine = 0 }
#if PLACES > 1
		:: atomic { place[1] == 0 -> place[1] = me; mine = 1 }
		:: atomic { place[0] != 0 && place[1] != 0 -> goto slow }
#else
		:: atomic { place[0] != 0 -> goto slow }
#endif
		fi;
#ifndef BUG_NO_SECOND_LOOK
		if                      /* ... unless a writer has come in between */
		:: DIE
		:: gate == 0
		:: atomic { gate != 0 -> skip };
			if
			:: DIE
#ifdef BUG_STEP_BACK_ANY
			:: atomic { place[0] == me -> place[0] = 0; goto slow }
#if PLACES > 1
			:: atomic { place[1] == me -> place[1] = 0; goto slow }
#endif
#else
			:: atomic { place[mine] = 0; goto slow }    /* what it took just now, not one that it reads in */
#endif
			fi
		fi;
#endif
		goto in
	:: gate != 0 -> goto slow
	fi;
slow:
	if
	:: inner ->                 /* a writer at the gate waits for us: not in line behind it */
		if
		:: DIE
#ifdef BUG_NEST_ELSEWHERE
		:: atomic { place[0] == 0 -> place[0] = me }
		:: atomic { place[1] == 0 -> place[1] = me }
		:: atomic { place[0] != 0 && place[1] != 0 -> goto out }
#else
		:: atomic { place[0] == me -> nested[0]++ }
#if PLACES > 1
		:: atomic { place[1] == me -> nested[1]++ }
#endif
#endif
		fi;
		goto in
	:: else
	fi;
	if
	:: DIE
	:: atomic { GATE_OPENS -> take_gate() }
	fi;
	if
	:: died ->
		if
		:: DIE
		:: atomic { owed = 0; gate = 0; passes = 0; died = 0 }
		fi;
		goto again
	:: else
	fi;
	if                          /* a place, maybe of a dead one */
	:: DIE
	:: atomic { place[0] == 0 || dead[place[0]] -> place[0] = me; nested[0] = 0 }
#if PLACES > 1
	:: atomic { place[1] == 0 || dead[place[1]] -> place[1] = me; nested[1] = 0 }
#endif
	fi;
	if
	:: DIE
	:: atomic { gate = 0; passes = 0 }
	fi;
in:
	atomic { reads[me] = 1; mine = 0;
		assert(!writes[1] || dead[1]);
#if WRITERS > 1
		assert(!writes[2] || dead[2])
#endif
	};
	if
	:: NEST && !inner -> inner = 1; goto again
	:: inner -> leave()         /* one of the two locks; it still reads */
	:: !inner
	fi;
	inner = 0;
out:
	if
	:: DIE
	:: atomic { reads[me] = 0 }
	fi;
	leave();
#ifdef BUG_NEST_ELSEWHERE
	if
	:: atomic { inner && (place[0] == me || place[1] == me) -> inner = 0 }; leave()
	:: else
	fi;
#endif
	atomic { through++; goto end };
die:
	atomic { dead[me] = 1; reads[me] = 0; mine = 0; died = 0; inner = 0; through++ };
end:
	skip
}

proctype monitor()
{
	timeout;
	assert(through == ALL)
}

init
{
	byte i;
	atomic {
		select(kills : 0 .. DEATHS); /* how many of the deaths are spent already */
		for (i : 1 .. ALL) {
			if
			:: i <= WRITERS -> run writer(i)
			:: else -> run reader(i)
			fi
		};
		i = 0;
		run monitor()
	}
}
