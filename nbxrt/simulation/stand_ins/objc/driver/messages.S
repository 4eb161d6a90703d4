# objc_msgSend for x86-64 over the lookup of GCC's Objective-C runtime, which has the lookup only. Around it is ours
# (watching.c), which is shown the arguments that came in general registers: where they are, and how many at most.
# Every register that may carry an argument survives the lookup, and the method is jumped to, so that arguments on the
# stack stay where the caller put them. A message to nil gives 0 in every register that may carry a result.

    .macro forward receiver, selector, first, count
    push %rbp
    mov  %rsp, %rbp
    sub  $192, %rsp
    mov  %rdi, 0(%rsp)
    mov  %rsi, 8(%rsp)
    mov  %rdx, 16(%rsp)
    mov  %rcx, 24(%rsp)
    mov  %r8, 32(%rsp)
    mov  %r9, 40(%rsp)
    mov  %rax, 48(%rsp)
    movaps %xmm0, 64(%rsp)
    movaps %xmm1, 80(%rsp)
    movaps %xmm2, 96(%rsp)
    movaps %xmm3, 112(%rsp)
    movaps %xmm4, 128(%rsp)
    movaps %xmm5, 144(%rsp)
    movaps %xmm6, 160(%rsp)
    movaps %xmm7, 176(%rsp)
    mov  \receiver, %rdi
    mov  \selector, %rsi
    lea  \first(%rsp), %rdx
    mov  $\count, %ecx
    call stub_lookup@PLT
    mov  %rax, %r11
    mov  0(%rsp), %rdi
    mov  8(%rsp), %rsi
    mov  16(%rsp), %rdx
    mov  24(%rsp), %rcx
    mov  32(%rsp), %r8
    mov  40(%rsp), %r9
    mov  48(%rsp), %rax
    movaps 64(%rsp), %xmm0
    movaps 80(%rsp), %xmm1
    movaps 96(%rsp), %xmm2
    movaps 112(%rsp), %xmm3
    movaps 128(%rsp), %xmm4
    movaps 144(%rsp), %xmm5
    movaps 160(%rsp), %xmm6
    movaps 176(%rsp), %xmm7
    leave
    jmp  *%r11
    .endm

    .text

    .globl objc_msgSend
    .type  objc_msgSend, @function
objc_msgSend:
    test %rdi, %rdi
    jz   1f
    forward %rdi, %rsi, 16, 4
1:  xor  %eax, %eax
    xor  %edx, %edx
    pxor %xmm0, %xmm0
    pxor %xmm1, %xmm1
    ret
    .size objc_msgSend, . - objc_msgSend

    .globl objc_msgSend_fpret
    .type  objc_msgSend_fpret, @function
objc_msgSend_fpret:
    test %rdi, %rdi
    jz   1f
    forward %rdi, %rsi, 16, 4
1:  fldz
    pxor %xmm0, %xmm0
    ret
    .size objc_msgSend_fpret, . - objc_msgSend_fpret

    # The address of the result comes first here, before the receiver.
    .globl objc_msgSend_stret
    .type  objc_msgSend_stret, @function
objc_msgSend_stret:
    test %rsi, %rsi
    jz   1f
    forward %rsi, %rdx, 24, 3
1:  mov  %rdi, %rax
    ret
    .size objc_msgSend_stret, . - objc_msgSend_stret

    .section .note.GNU-stack, "", @progbits
