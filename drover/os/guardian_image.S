// SPDX-License-Identifier: Apache-2.0
// The guardian program's file, as bytes of the library.
        .section .rodata
        .balign 16
        .globl  drover_guardian_begin
        .globl  drover_guardian_end
        .hidden drover_guardian_begin
        .hidden drover_guardian_end
drover_guardian_begin:
        .incbin DROVER_GUARDIAN_FILE
drover_guardian_end:
        .section .note.GNU-stack, "", %progbits
