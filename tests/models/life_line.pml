/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a child's life is tied to its parent's (drover/os/self.cc die_with_parent, drover/worker/service.h life_line): a child that has just
 * been started asks for a signal at the death of the thread that started it, then for one when the life line closes, and then looks whether
 * it came too late. The parent has two threads, the first of which has started the child; it is killed at any step, or never.
 *
 * The kernel's part, of do_exit, find_new_reaper and forget_original_parent: the threads of a killed process end each for itself. A thread
 * is marked as ending; lets go of the descriptors, which the last one closes: the pipe signals whoever has asked by then; gives its
 * children the signal they have asked for, and leaves them to another thread that is not marked, or else to another process.
 *
 * Checked when nothing moves any more (monitor): the child has ended, or its parent lives. No child of a living parent ends.
 *
 * LOST_SIGNAL: the signal at the thread's death never comes: the life line alone is enough.
 * NO_LINE: somebody else holds the write end open (a fork by the user's code): the signal alone is enough.
 * THREAD_ENDS: the first thread may end alone. Then its children end although the process lives, so a thread that lasts starts them.
 */
#define FIRST 0
#define SECOND 1
#define OTHERS 2             /* another process: getppid tells the difference */

bit dying, ending[2];        /* the parent: killed; its threads: marked */
byte users = 2, father = FIRST; /* threads that hold the descriptors; whose child it is */
bit closed;                  /* the life line */
bit asked, owner, async;     /* by the child: PR_SET_PDEATHSIG; F_SETOWN and F_SETSIG; O_ASYNC */
bit killed, left;            /* the child: SIGKILL is on its way; has ended by itself */

inline LOOK()
{
#ifndef BUG_NO_POLL
	late = closed;
#endif
#ifndef BUG_NO_GETPPID
	late = late || father == OTHERS
#endif
}

active proctype child()
{
	bit late;
	{
#ifdef BUG_LOOK_FIRST
		LOOK();
#endif
#ifndef LOST_SIGNAL
		asked = 1;
#endif
		owner = 1;
		async = 1;
#ifndef BUG_LOOK_FIRST
		LOOK();
#endif
		late -> left = 1     /* else it runs, sleeps or is stopped: all the same to SIGKILL */
	} unless { killed }
}

active proctype killer()
{
	dying = 1
}

proctype thread(byte me)
{
	if
	:: dying
#ifdef THREAD_ENDS
	:: me == FIRST
#endif
	fi;
	ending[me] = 1;
	d_step {
		users--;
#ifndef NO_LINE
		if
		:: users == 0 -> closed = 1; killed = killed || (owner && async)
		:: else
		fi
#endif
	};
	d_step {
		if
		:: father == me -> killed = killed || asked; father = (ending[1 - me] -> OTHERS : 1 - me)
		:: else
		fi
	}
}

active proctype monitor()
{
	if
	:: timeout -> assert(killed || left)
	:: atomic { killed || left -> assert(dying) }
	fi
}

init
{
	atomic { run thread(FIRST); run thread(SECOND) }
}
