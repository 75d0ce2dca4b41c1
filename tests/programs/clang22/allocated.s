# SPDX-License-Identifier: Apache-2.0
# Made of allocated.cc by clang 22.
	.file	"allocated.cc"
	.file	0 "." "allocated.cc" md5 0xbeece73f4a56137cba083da3d77849a0
	.text
	.globl	_ZN7CountedD2Ev
	.p2align	4
	.type	_ZN7CountedD2Ev,@function
_ZN7CountedD2Ev:
.Lfunc_begin0:
	.cfi_startproc
	.loc	0 25 12 prologue_end
	movq	(%rdi), %rdi
.Ltmp0:
	.loc	0 25 5 is_stmt 0
	testq	%rdi, %rdi
	je	.LBB0_1
.Ltmp1:
	.loc	0 25 5 is_stmt 1
	movl	$56, %esi
.Ltmp2:
	jmp	_ZdlPvm@PLT
.Ltmp3:
.LBB0_1:
	.loc	0 26 1
	retq
.Ltmp4:
.Lfunc_end0:
	.size	_ZN7CountedD2Ev, .Lfunc_end0-_ZN7CountedD2Ev
	.cfi_endproc
	.globl	main
	.p2align	4
	.type	main,@function
main:
.Lfunc_begin1:
	.loc	0 35 0
	.cfi_startproc
	pushq	%r15
	.cfi_def_cfa_offset 16
	pushq	%r14
	.cfi_def_cfa_offset 24
	pushq	%rbx
	.cfi_def_cfa_offset 32
	.cfi_offset %rbx, -32
	.cfi_offset %r14, -24
	.cfi_offset %r15, -16
.Ltmp5:
	movl	$5, %ebx
	xorl	%eax, %eax
.Ltmp6:
	.loc	0 0 0 is_stmt 0
.Ltmp7:
	.p2align	4
.LBB1_1:
	.loc	0 37 45 prologue_end is_stmt 1
	movq	%rax, %rdi
	callq	_ZL9make_itemP4Item
.Ltmp8:
	.loc	0 37 23
	decl	%ebx
.Ltmp9:
	.loc	0 37 5
	jne	.LBB1_1
.Ltmp10:
	.loc	0 38 13
	movq	kept@GOTPCREL(%rip), %r14
	movq	%rax, (%r14)
	.loc	0 39 17
	movl	$336, %edi
	callq	_Znam@PLT
.Ltmp11:
	.loc	0 39 17
	movq	%rax, %rbx
.Ltmp12:
	movl	$336, %edx
	movq	%rax, %rdi
	xorl	%esi, %esi
	callq	memset@PLT
.Ltmp13:
	.loc	0 40 27
	movl	$56, %edi
	callq	_Znwm@PLT
.Ltmp14:
	.loc	0 40 31
	xorps	%xmm0, %xmm0
	movaps	%xmm0, (%rax)
	movaps	%xmm0, 16(%rax)
	movaps	%xmm0, 32(%rax)
	movq	$0, 48(%rax)
	.loc	0 40 25 is_stmt 0
	movq	%rax, 328(%rbx)
	.loc	0 41 13 is_stmt 1
	movq	%rbx, 8(%r14)
	.loc	0 42 24
	movl	$32, %edi
	callq	_Znam@PLT
.Ltmp15:
	.loc	0 42 24
	movq	%rax, %rbx
.Ltmp16:
	movq	$3, (%rax)
	leaq	8(%rax), %r15
	xorps	%xmm0, %xmm0
	movups	%xmm0, 8(%rax)
	movq	$0, 24(%rax)
.Ltmp17:
	.loc	0 43 23
	movl	$56, %edi
	callq	_Znwm@PLT
.Ltmp18:
	.loc	0 40 31 is_stmt 0
	xorps	%xmm0, %xmm0
	.loc	0 43 27 is_stmt 1
	movaps	%xmm0, (%rax)
	movaps	%xmm0, 16(%rax)
	movaps	%xmm0, 32(%rax)
	movq	$0, 48(%rax)
	.loc	0 43 21 is_stmt 0
	movq	%rax, 24(%rbx)
	.loc	0 44 13 is_stmt 1
	movq	%r15, 16(%r14)
	.loc	0 45 5
	leaq	.L.str(%rip), %rdi
	callq	puts@PLT
.Ltmp19:
	.loc	0 46 5
	xorl	%edi, %edi
	callq	fflush@PLT
.Ltmp20:
	.loc	0 47 12
	callq	getchar@PLT
.Ltmp21:
	.loc	0 47 22
	xorl	%ecx, %ecx
	cmpl	$120, %eax
	sete	%cl
	.loc	0 47 5 is_stmt 0
	movl	%ecx, %eax
	.loc	0 47 5 epilogue_begin
	popq	%rbx
	.cfi_def_cfa_offset 24
	popq	%r14
	.cfi_def_cfa_offset 16
	popq	%r15
.Ltmp22:
	.cfi_def_cfa_offset 8
	retq
.Ltmp23:
.Lfunc_end1:
	.size	main, .Lfunc_end1-main
	.cfi_endproc
	.p2align	4
	.type	_ZL9make_itemP4Item,@function
_ZL9make_itemP4Item:
.Lfunc_begin2:
	.loc	0 31 0 is_stmt 1
	.cfi_startproc
	pushq	%rbx
	.cfi_def_cfa_offset 16
	.cfi_offset %rbx, -16
	movq	%rdi, %rbx
.Ltmp24:
	.loc	0 32 12 prologue_end
	movl	$56, %edi
.Ltmp25:
	callq	_Znwm@PLT
.Ltmp26:
	.loc	0 32 12
	xorps	%xmm0, %xmm0
	movaps	%xmm0, (%rax)
	movaps	%xmm0, 16(%rax)
	movaps	%xmm0, 32(%rax)
	.loc	0 32 20 is_stmt 0
	movq	%rbx, 48(%rax)
	.loc	0 32 5 epilogue_begin
	popq	%rbx
.Ltmp27:
	.cfi_def_cfa_offset 8
	retq
.Ltmp28:
.Lfunc_end2:
	.size	_ZL9make_itemP4Item, .Lfunc_end2-_ZL9make_itemP4Item
	.cfi_endproc
	.type	kept,@object
	.bss
	.globl	kept
	.p2align	4, 0x0
kept:
	.zero	32
	.size	kept, 32
	.type	.L.str,@object
	.section	.rodata.str1.1,"aMS",@progbits,1
.L.str:
	.asciz	"ready"
	.size	.L.str, 6
	.globl	_ZN7CountedD1Ev
	.type	_ZN7CountedD1Ev,@function
_ZN7CountedD1Ev = _ZN7CountedD2Ev
	.section	.debug_loclists,"",@progbits
	.long	.Ldebug_list_header_end0-.Ldebug_list_header_start0
.Ldebug_list_header_start0:
	.short	5
	.byte	8
	.byte	0
	.long	6
.Lloclists_table_base0:
	.long	.Ldebug_loc0-.Lloclists_table_base0
	.long	.Ldebug_loc1-.Lloclists_table_base0
	.long	.Ldebug_loc2-.Lloclists_table_base0
	.long	.Ldebug_loc3-.Lloclists_table_base0
	.long	.Ldebug_loc4-.Lloclists_table_base0
	.long	.Ldebug_loc5-.Lloclists_table_base0
.Ldebug_loc0:
	.byte	4
	.uleb128 .Lfunc_begin0-.Lfunc_begin0
	.uleb128 .Ltmp0-.Lfunc_begin0
	.byte	1
	.byte	85
	.byte	4
	.uleb128 .Ltmp0-.Lfunc_begin0
	.uleb128 .Lfunc_end0-.Lfunc_begin0
	.byte	4
	.byte	163
	.byte	1
	.byte	85
	.byte	159
	.byte	0
.Ldebug_loc1:
	.byte	4
	.uleb128 .Ltmp5-.Lfunc_begin0
	.uleb128 .Ltmp6-.Lfunc_begin0
	.byte	2
	.byte	48
	.byte	159
	.byte	4
	.uleb128 .Ltmp6-.Lfunc_begin0
	.uleb128 .Ltmp11-.Lfunc_begin0
	.byte	1
	.byte	80
	.byte	0
.Ldebug_loc2:
	.byte	4
	.uleb128 .Ltmp6-.Lfunc_begin0
	.uleb128 .Ltmp8-.Lfunc_begin0
	.byte	16
	.byte	115
	.byte	0
	.byte	16
	.byte	255
	.byte	255
	.byte	255
	.byte	255
	.byte	15
	.byte	26
	.byte	17
	.byte	5
	.byte	28
	.byte	17
	.byte	127
	.byte	27
	.byte	159
	.byte	4
	.uleb128 .Ltmp8-.Lfunc_begin0
	.uleb128 .Ltmp9-.Lfunc_begin0
	.byte	19
	.byte	115
	.byte	0
	.byte	16
	.byte	255
	.byte	255
	.byte	255
	.byte	255
	.byte	15
	.byte	26
	.byte	17
	.byte	5
	.byte	28
	.byte	17
	.byte	127
	.byte	27
	.byte	17
	.byte	1
	.byte	34
	.byte	159
	.byte	0
.Ldebug_loc3:
	.byte	4
	.uleb128 .Ltmp12-.Lfunc_begin0
	.uleb128 .Ltmp16-.Lfunc_begin0
	.byte	1
	.byte	83
	.byte	0
.Ldebug_loc4:
	.byte	4
	.uleb128 .Ltmp17-.Lfunc_begin0
	.uleb128 .Ltmp22-.Lfunc_begin0
	.byte	1
	.byte	95
	.byte	0
.Ldebug_loc5:
	.byte	4
	.uleb128 .Lfunc_begin2-.Lfunc_begin0
	.uleb128 .Ltmp25-.Lfunc_begin0
	.byte	1
	.byte	85
	.byte	4
	.uleb128 .Ltmp25-.Lfunc_begin0
	.uleb128 .Ltmp27-.Lfunc_begin0
	.byte	1
	.byte	83
	.byte	4
	.uleb128 .Ltmp27-.Lfunc_begin0
	.uleb128 .Lfunc_end2-.Lfunc_begin0
	.byte	4
	.byte	163
	.byte	1
	.byte	85
	.byte	159
	.byte	0
.Ldebug_list_header_end0:
	.section	.debug_abbrev,"",@progbits
	.byte	1
	.byte	17
	.byte	1
	.byte	37
	.byte	37
	.byte	19
	.byte	5
	.byte	3
	.byte	37
	.byte	114
	.byte	23
	.byte	16
	.byte	23
	.byte	27
	.byte	37
	.byte	17
	.byte	27
	.byte	18
	.byte	6
	.byte	115
	.byte	23
	.ascii	"\214\001"
	.byte	23
	.byte	0
	.byte	0
	.byte	2
	.byte	52
	.byte	0
	.byte	3
	.byte	37
	.byte	73
	.byte	19
	.byte	63
	.byte	25
	.byte	58
	.byte	11
	.byte	59
	.byte	11
	.byte	2
	.byte	24
	.byte	0
	.byte	0
	.byte	3
	.byte	1
	.byte	1
	.byte	73
	.byte	19
	.byte	0
	.byte	0
	.byte	4
	.byte	33
	.byte	0
	.byte	73
	.byte	19
	.byte	55
	.byte	11
	.byte	0
	.byte	0
	.byte	5
	.byte	15
	.byte	0
	.byte	0
	.byte	0
	.byte	6
	.byte	36
	.byte	0
	.byte	3
	.byte	37
	.byte	11
	.byte	11
	.byte	62
	.byte	11
	.byte	0
	.byte	0
	.byte	7
	.byte	52
	.byte	0
	.byte	73
	.byte	19
	.byte	58
	.byte	11
	.byte	59
	.byte	11
	.byte	2
	.byte	24
	.byte	0
	.byte	0
	.byte	8
	.byte	38
	.byte	0
	.byte	73
	.byte	19
	.byte	0
	.byte	0
	.byte	9
	.byte	36
	.byte	0
	.byte	3
	.byte	37
	.byte	62
	.byte	11
	.byte	11
	.byte	11
	.byte	0
	.byte	0
	.byte	10
	.byte	4
	.byte	1
	.byte	73
	.byte	19
	.byte	11
	.byte	11
	.byte	58
	.byte	11
	.byte	59
	.byte	11
	.byte	0
	.byte	0
	.byte	11
	.byte	40
	.byte	0
	.byte	3
	.byte	37
	.byte	28
	.byte	15
	.byte	0
	.byte	0
	.byte	12
	.byte	19
	.byte	1
	.byte	54
	.byte	11
	.byte	3
	.byte	37
	.byte	11
	.byte	11
	.byte	58
	.byte	11
	.byte	59
	.byte	11
	.byte	0
	.byte	0
	.byte	13
	.byte	13
	.byte	0
	.byte	3
	.byte	37
	.byte	73
	.byte	19
	.byte	58
	.byte	11
	.byte	59
	.byte	11
	.byte	56
	.byte	11
	.byte	0
	.byte	0
	.byte	14
	.byte	46
	.byte	1
	.byte	110
	.byte	37
	.byte	3
	.byte	37
	.byte	58
	.byte	11
	.byte	59
	.byte	11
	.byte	60
	.byte	25
	.byte	63
	.byte	25
	.byte	0
	.byte	0
	.byte	15
	.byte	5
	.byte	0
	.byte	73
	.byte	19
	.byte	52
	.byte	25
	.byte	0
	.byte	0
	.byte	16
	.byte	15
	.byte	0
	.byte	73
	.byte	19
	.byte	0
	.byte	0
	.byte	17
	.byte	46
	.byte	1
	.byte	17
	.byte	27
	.byte	18
	.byte	6
	.byte	64
	.byte	24
	.byte	100
	.byte	19
	.byte	122
	.byte	25
	.byte	59
	.byte	11
	.byte	110
	.byte	37
	.byte	71
	.byte	19
	.byte	0
	.byte	0
	.byte	18
	.byte	5
	.byte	0
	.byte	2
	.byte	34
	.byte	3
	.byte	37
	.byte	73
	.byte	19
	.byte	52
	.byte	25
	.byte	0
	.byte	0
	.byte	19
	.byte	72
	.byte	1
	.byte	127
	.byte	19
	.ascii	"\202\001"
	.byte	25
	.ascii	"\201\001"
	.byte	27
	.byte	0
	.byte	0
	.byte	20
	.byte	73
	.byte	0
	.byte	2
	.byte	24
	.byte	126
	.byte	24
	.byte	0
	.byte	0
	.byte	21
	.byte	46
	.byte	1
	.byte	110
	.byte	37
	.byte	3
	.byte	37
	.byte	60
	.byte	25
	.byte	52
	.byte	25
	.byte	63
	.byte	25
	.byte	0
	.byte	0
	.byte	22
	.byte	5
	.byte	0
	.byte	73
	.byte	19
	.byte	0
	.byte	0
	.byte	23
	.byte	46
	.byte	1
	.byte	17
	.byte	27
	.byte	18
	.byte	6
	.byte	64
	.byte	24
	.byte	122
	.byte	25
	.byte	3
	.byte	37
	.byte	58
	.byte	11
	.byte	59
	.byte	11
	.byte	73
	.byte	19
	.byte	63
	.byte	25
	.byte	0
	.byte	0
	.byte	24
	.byte	52
	.byte	0
	.byte	2
	.byte	34
	.byte	3
	.byte	37
	.byte	58
	.byte	11
	.byte	59
	.byte	11
	.byte	73
	.byte	19
	.byte	0
	.byte	0
	.byte	25
	.byte	11
	.byte	1
	.byte	17
	.byte	27
	.byte	18
	.byte	6
	.byte	0
	.byte	0
	.byte	26
	.byte	72
	.byte	0
	.byte	127
	.byte	19
	.byte	125
	.byte	27
	.byte	0
	.byte	0
	.byte	27
	.byte	72
	.byte	1
	.byte	127
	.byte	19
	.byte	125
	.byte	27
	.ascii	"\216|"
	.byte	19
	.byte	0
	.byte	0
	.byte	28
	.byte	72
	.byte	1
	.byte	127
	.byte	19
	.byte	125
	.byte	27
	.byte	0
	.byte	0
	.byte	29
	.byte	46
	.byte	1
	.byte	17
	.byte	27
	.byte	18
	.byte	6
	.byte	64
	.byte	24
	.byte	122
	.byte	25
	.byte	110
	.byte	37
	.byte	3
	.byte	37
	.byte	58
	.byte	11
	.byte	59
	.byte	11
	.byte	73
	.byte	19
	.byte	0
	.byte	0
	.byte	30
	.byte	5
	.byte	0
	.byte	2
	.byte	34
	.byte	3
	.byte	37
	.byte	58
	.byte	11
	.byte	59
	.byte	11
	.byte	73
	.byte	19
	.byte	0
	.byte	0
	.byte	31
	.byte	46
	.byte	1
	.byte	110
	.byte	37
	.byte	3
	.byte	37
	.byte	73
	.byte	19
	.byte	60
	.byte	25
	.byte	52
	.byte	25
	.byte	63
	.byte	25
	.byte	0
	.byte	0
	.byte	32
	.byte	46
	.byte	1
	.byte	3
	.byte	37
	.byte	58
	.byte	11
	.byte	59
	.byte	11
	.byte	73
	.byte	19
	.byte	60
	.byte	25
	.byte	63
	.byte	25
	.byte	0
	.byte	0
	.byte	33
	.byte	46
	.byte	0
	.byte	3
	.byte	37
	.byte	58
	.byte	11
	.byte	59
	.byte	11
	.byte	73
	.byte	19
	.byte	60
	.byte	25
	.byte	63
	.byte	25
	.byte	0
	.byte	0
	.byte	0
	.section	.debug_info,"",@progbits
.Lcu_begin0:
	.long	.Ldebug_info_end0-.Ldebug_info_start0
.Ldebug_info_start0:
	.short	5
	.byte	1
	.byte	8
	.long	.debug_abbrev
	.byte	1
	.byte	0
	.short	33
	.byte	1
	.long	.Lstr_offsets_base0
	.long	.Lline_table_start0
	.byte	2
	.byte	2
	.long	.Lfunc_end2-.Lfunc_begin0
	.long	.Laddr_table_base0
	.long	.Lloclists_table_base0
	.byte	2
	.byte	3
	.long	50
	.byte	0
	.byte	29
	.byte	2
	.byte	161
	.byte	0
	.byte	3
	.long	62
	.byte	4
	.long	63
	.byte	4
	.byte	0
	.byte	5
	.byte	6
	.byte	4
	.byte	8
	.byte	7
	.byte	7
	.long	77
	.byte	0
	.byte	45
	.byte	2
	.byte	161
	.byte	1
	.byte	3
	.long	89
	.byte	4
	.long	63
	.byte	6
	.byte	0
	.byte	8
	.long	94
	.byte	9
	.byte	5
	.byte	6
	.byte	1
	.byte	10
	.long	113
	.byte	4
	.byte	0
	.byte	28
	.byte	11
	.byte	7
	.byte	5
	.byte	11
	.byte	8
	.byte	7
	.byte	0
	.byte	9
	.byte	6
	.byte	7
	.byte	4
	.byte	12
	.byte	4
	.byte	16
	.byte	8
	.byte	0
	.byte	20
	.byte	13
	.byte	9
	.long	144
	.byte	0
	.byte	22
	.byte	0
	.byte	14
	.byte	14
	.byte	15
	.byte	0
	.byte	21
	.byte	15
	.long	190
	.byte	0
	.byte	0
	.byte	16
	.long	149
	.byte	12
	.byte	5
	.byte	13
	.byte	56
	.byte	0
	.byte	10
	.byte	13
	.byte	10
	.long	174
	.byte	0
	.byte	11
	.byte	0
	.byte	13
	.byte	12
	.long	144
	.byte	0
	.byte	12
	.byte	48
	.byte	0
	.byte	3
	.long	186
	.byte	4
	.long	63
	.byte	6
	.byte	0
	.byte	9
	.byte	11
	.byte	5
	.byte	8
	.byte	16
	.long	117
	.byte	17
	.byte	2
	.long	.Lfunc_end0-.Lfunc_begin0
	.byte	1
	.byte	87
	.long	213
	.byte	24
	.byte	30
	.long	132
	.byte	18
	.byte	0
	.byte	34
	.long	561
	.byte	19
	.long	234
	.byte	3
	.byte	20
	.byte	1
	.byte	84
	.byte	2
	.byte	16
	.byte	56
	.byte	0
	.byte	0
	.byte	21
	.byte	17
	.byte	18
	.byte	22
	.long	62
	.byte	22
	.long	248
	.byte	0
	.byte	9
	.byte	19
	.byte	7
	.byte	8
	.byte	23
	.byte	4
	.long	.Lfunc_end1-.Lfunc_begin1
	.byte	1
	.byte	87
	.byte	31
	.byte	0
	.byte	35
	.long	530
	.byte	24
	.byte	1
	.byte	35
	.byte	0
	.byte	36
	.long	144
	.byte	24
	.byte	3
	.byte	37
	.byte	0
	.byte	39
	.long	566
	.byte	24
	.byte	4
	.byte	38
	.byte	0
	.byte	42
	.long	561
	.byte	25
	.byte	5
	.long	.Ltmp10-.Ltmp6
	.byte	24
	.byte	2
	.byte	36
	.byte	0
	.byte	37
	.long	530
	.byte	0
	.byte	26
	.long	410
	.byte	6
	.byte	27
	.long	453
	.byte	7
	.long	466
	.byte	20
	.byte	1
	.byte	85
	.byte	3
	.byte	16
	.ascii	"\320\002"
	.byte	0
	.byte	27
	.long	503
	.byte	8
	.long	149
	.byte	20
	.byte	1
	.byte	85
	.byte	2
	.byte	16
	.byte	56
	.byte	0
	.byte	27
	.long	453
	.byte	9
	.long	117
	.byte	20
	.byte	1
	.byte	85
	.byte	2
	.byte	16
	.byte	32
	.byte	0
	.byte	27
	.long	503
	.byte	10
	.long	149
	.byte	20
	.byte	1
	.byte	85
	.byte	2
	.byte	16
	.byte	56
	.byte	0
	.byte	26
	.long	516
	.byte	11
	.byte	28
	.long	539
	.byte	12
	.byte	20
	.byte	1
	.byte	85
	.byte	1
	.byte	48
	.byte	0
	.byte	26
	.long	553
	.byte	13
	.byte	0
	.byte	29
	.byte	14
	.long	.Lfunc_end2-.Lfunc_begin2
	.byte	1
	.byte	87
	.byte	32
	.byte	33
	.byte	0
	.byte	31
	.long	144
	.byte	30
	.byte	5
	.byte	12
	.byte	0
	.byte	31
	.long	144
	.byte	27
	.long	503
	.byte	15
	.long	149
	.byte	20
	.byte	1
	.byte	85
	.byte	2
	.byte	16
	.byte	56
	.byte	0
	.byte	0
	.byte	31
	.byte	20
	.byte	21
	.long	62
	.byte	22
	.long	248
	.byte	0
	.byte	12
	.byte	5
	.byte	23
	.byte	48
	.byte	0
	.byte	15
	.byte	13
	.byte	22
	.long	491
	.byte	0
	.byte	16
	.byte	0
	.byte	13
	.byte	9
	.long	144
	.byte	0
	.byte	17
	.byte	40
	.byte	0
	.byte	3
	.long	94
	.byte	4
	.long	63
	.byte	40
	.byte	0
	.byte	31
	.byte	24
	.byte	25
	.long	62
	.byte	22
	.long	248
	.byte	0
	.byte	32
	.byte	26
	.byte	0
	.byte	6
	.long	530
	.byte	22
	.long	534
	.byte	0
	.byte	9
	.byte	27
	.byte	5
	.byte	4
	.byte	16
	.long	89
	.byte	32
	.byte	28
	.byte	0
	.byte	8
	.long	530
	.byte	22
	.long	62
	.byte	0
	.byte	33
	.byte	29
	.byte	0
	.byte	7
	.long	530
	.byte	16
	.long	117
	.byte	16
	.long	466
	.byte	0
.Ldebug_info_end0:
	.section	.debug_str_offsets,"",@progbits
	.long	160
	.short	5
	.short	0
.Lstr_offsets_base0:
	.section	.debug_str,"MS",@progbits,1
.Linfo_string0:
	.byte	0
.Linfo_string1:
	.asciz	"allocated.cc"
.Linfo_string2:
	.asciz	"."
.Linfo_string3:
	.asciz	"kept"
.Linfo_string4:
	.asciz	"__ARRAY_SIZE_TYPE__"
.Linfo_string5:
	.asciz	"char"
.Linfo_string6:
	.asciz	"unsigned int"
.Linfo_string7:
	.asciz	"ITEMS"
.Linfo_string8:
	.asciz	"ROWS"
.Linfo_string9:
	.asciz	"item"
.Linfo_string10:
	.asciz	"numbers"
.Linfo_string11:
	.asciz	"long"
.Linfo_string12:
	.asciz	"next"
.Linfo_string13:
	.asciz	"Item"
.Linfo_string14:
	.asciz	"_ZN7CountedD4Ev"
.Linfo_string15:
	.asciz	"~Counted"
.Linfo_string16:
	.asciz	"Counted"
.Linfo_string17:
	.asciz	"_ZdlPvm"
.Linfo_string18:
	.asciz	"operator delete"
.Linfo_string19:
	.asciz	"unsigned long"
.Linfo_string20:
	.asciz	"_Znam"
.Linfo_string21:
	.asciz	"operator new[]"
.Linfo_string22:
	.asciz	"text"
.Linfo_string23:
	.asciz	"Row"
.Linfo_string24:
	.asciz	"_Znwm"
.Linfo_string25:
	.asciz	"operator new"
.Linfo_string26:
	.asciz	"puts"
.Linfo_string27:
	.asciz	"int"
.Linfo_string28:
	.asciz	"fflush"
.Linfo_string29:
	.asciz	"getchar"
.Linfo_string30:
	.asciz	"_ZN7CountedD2Ev"
.Linfo_string31:
	.asciz	"main"
.Linfo_string32:
	.asciz	"_ZL9make_itemP4Item"
.Linfo_string33:
	.asciz	"make_item"
.Linfo_string34:
	.asciz	"this"
.Linfo_string35:
	.asciz	"items"
.Linfo_string36:
	.asciz	"i"
.Linfo_string37:
	.asciz	"rows"
.Linfo_string38:
	.asciz	"counted"
	.section	.debug_str_offsets,"",@progbits
	.long	.Linfo_string0
	.long	.Linfo_string1
	.long	.Linfo_string2
	.long	.Linfo_string3
	.long	.Linfo_string4
	.long	.Linfo_string5
	.long	.Linfo_string6
	.long	.Linfo_string7
	.long	.Linfo_string8
	.long	.Linfo_string9
	.long	.Linfo_string10
	.long	.Linfo_string11
	.long	.Linfo_string12
	.long	.Linfo_string13
	.long	.Linfo_string14
	.long	.Linfo_string15
	.long	.Linfo_string16
	.long	.Linfo_string17
	.long	.Linfo_string18
	.long	.Linfo_string19
	.long	.Linfo_string20
	.long	.Linfo_string21
	.long	.Linfo_string22
	.long	.Linfo_string23
	.long	.Linfo_string24
	.long	.Linfo_string25
	.long	.Linfo_string26
	.long	.Linfo_string27
	.long	.Linfo_string28
	.long	.Linfo_string29
	.long	.Linfo_string30
	.long	.Linfo_string31
	.long	.Linfo_string32
	.long	.Linfo_string33
	.long	.Linfo_string34
	.long	.Linfo_string35
	.long	.Linfo_string36
	.long	.Linfo_string37
	.long	.Linfo_string38
	.section	.debug_addr,"",@progbits
	.long	.Ldebug_addr_end0-.Ldebug_addr_start0
.Ldebug_addr_start0:
	.short	5
	.byte	8
	.byte	0
.Laddr_table_base0:
	.quad	kept
	.quad	.L.str
	.quad	.Lfunc_begin0
	.quad	.Ltmp2
	.quad	.Lfunc_begin1
	.quad	.Ltmp6
	.quad	.Ltmp8
	.quad	.Ltmp11
	.quad	.Ltmp14
	.quad	.Ltmp15
	.quad	.Ltmp18
	.quad	.Ltmp19
	.quad	.Ltmp20
	.quad	.Ltmp21
	.quad	.Lfunc_begin2
	.quad	.Ltmp26
.Ldebug_addr_end0:
	.section	".note.GNU-stack","",@progbits
	.section	.debug_line,"",@progbits
.Lline_table_start0:
