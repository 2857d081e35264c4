# SPDX-License-Identifier: MIT
"""Makes the small files of ftrace's forms that are the fuzzers' seeds and test_ftrace.c's input.

make_ftrace_seeds.py CORPUS: writes into CORPUS/ftrace_text, CORPUS/systrace_html, CORPUS/ftrace_pages,
CORPUS/ftrace_stream, CORPUS/trace_dat.
"""
import base64
import gzip
import os
import struct
import sys
import zlib

CORPUS = sys.argv[1]


def w(name, data):
    with open(os.path.join(CORPUS, name), 'wb') as file:
        file.write(data if isinstance(data, bytes) else data.encode())


w('ftrace_text/trace.txt','''# tracer: nop
#
# entries-in-buffer/entries-written: 10/12   #P:2
#
          <idle>-0       [001] d..2.  1234.000001: sched_switch: prev_comm=swapper/1 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=a b-c next_pid=19 next_prio=120
           a b-c-19      (     18) [001] ..... 1234.000002: tracing_mark_write: B|18|load
           a b-c-19      (     18) [001] ..... 1234.000003: tracing_mark_write: C|18|queue|5
           a b-c-19      (     18) [001] ..... 1234.000004: tracing_mark_write: S|18|req|77
           a b-c-19      (     18) [001] ..... 1234.000005: tracing_mark_write: G|18|lane|job|7
           a b-c-19      (     18) [001] ..... 1234.000006: tracing_mark_write: H|18|lane|7
           a b-c-19      (     18) [001] ..... 1234.000007: tracing_mark_write: F|18|req|77
           a b-c-19      (     18) [001] ..... 1234.000008: tracing_mark_write: E|18
           a b-c-19      [001] d..2. 1234.000009: irq_handler_entry: irq=9 name=acpi
           a b-c-19      [001] d..2. 1234.000010: irq_handler_exit: irq=9 ret=handled
           a b-c-19      [001] ..... 1234.000011: sys_enter: NR 1 (1, 7ffe, 5)
           a b-c-19      [001] ..... 1234.000012: sys_exit: NR 1 = 5
           a b-c-19      [001] d..3. 1234.000013: task_newtask: pid=20 comm=kid clone_flags=10900 oom_score_adj=0
           a b-c-19      [001] d..3. 1234.000014: sched_waking: comm=kid pid=20 prio=120 target_cpu=000
CPU:1 [LOST 42 EVENTS]
''')
w('ftrace_text/report.txt','''version = 6
cpus=2
       trace-cmd-2461  [000]    34.896920123: sched_switch:         trace-cmd:2461 [120] S ==> sshd:2450 [120]
            sshd-2450  [000]    34.896941000: sched_wakeup:         rcu:7 [120] success=1 CPU:000
            sshd-2450  [000]    34.896951000: print:                tracing_mark_write: I|2450|tick
            sshd-2450  [000]    34.896961000: thermal_power: [FAILED TO PARSE] a=ARRAY[0f, 00] freq=0x82208 b=-4
CPU:0 [EVENTS DROPPED]
            sshd-2450  [000]    34.896971000: function:             vfs_read <-- ksys_read
''')
w('ftrace_text/graph.txt','''# tracer: function_graph
#
# CPU  DURATION                  FUNCTION CALLS
 0)               |  sys_open() {
 0)   0.541 us    |    getname();
 0) + 12.300 us   |  } /* sys_open */
 ------------------------------------------
 0)    sshd-123    =>    bash-12
 ------------------------------------------
 0)   1.1 us      |  sys_read();
''')
w('ftrace_text/latency.txt','''  <idle>-0       0d.h1    3us+: tick_do <-tick_irq
    bash-3994    1d..1   12us : _raw_spin_lock <-lock
''')
w('ftrace_text/units.txt','''us : not a time
 1-1 0d..1 1us:
''')
w('systrace_html/page.html','''<!DOCTYPE html>
<html><body>
<script class="trace-data" type="application/text">
PROCESS DUMP
USER PID PPID VSZ RSS WCHAN PC S NAME COMM
root 1 0 100 200 ep 0 S init init
USER PID TID CMD
root 1 2 worker one
</script>
<script class="trace-data" type="application/text">
  init-1 (1) [000] .... 1.000001: tracing_mark_write: B|1|x
  init-1 (1) [000] .... 1.000002: tracing_mark_write: E|1
</script>
<script class="trace-data" type="application/text">
{"traceEvents":[{"ph":"X","ts":1,"dur":2,"pid":1,"tid":1,"name":"a"}]}
</script></body></html>
''')
w('systrace_html/packed.html',b'<html><script id="viewer-data" type="application/json">\n'+base64.encodebytes(gzip.compress(
b'{"traceEvents":[{"ph":"X","ts":1,"dur":2,"pid":1,"tid":1,"name":"a"},{"ph":"i","ts":2,"pid":1,"tid":1,"name":"b"}]}',mtime=0))+b'</script></html>\n')
w('ftrace_text/atrace.z',b'capturing trace... done\nTRACE:\n'+zlib.compress(b'# tracer: nop\n  a-1 [000] .... 1.000001: tracing_mark_write: B|1|x\n  a-1 [000] .... 1.000002: tracing_mark_write: E\n'))
hp=b'\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\tfield: char data;\toffset:16;\tsize:240;\tsigned:1;\n'
com='''\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;
\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;
\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;
\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;

'''
def fmt(n,i,f): return ('name: %s\nID: %d\nformat:\n'%(n,i)+com+''.join('\tfield:%s;\toffset:%d;\tsize:%d;\tsigned:%d;\n'%x for x in f)+'\nprint fmt: "%s", "x"\n').encode()
F={'print':fmt('print',5,[('unsigned long ip',8,8,0),('char buf[]',16,0,0)]),
'bprint':fmt('bprint',6,[('unsigned long ip',8,8,0),('const char * fmt',16,8,0),('u32 buf[]',24,0,0)]),
'sched_switch':fmt('sched_switch',300,[('char prev_comm[16]',8,16,0),('pid_t prev_pid',24,4,1),('int prev_prio',28,4,1),('long prev_state',32,8,1),('char next_comm[16]',40,16,0),('pid_t next_pid',56,4,1),('int next_prio',60,4,1)]),
'exec':fmt('sched_process_exec',301,[('__data_loc char[] filename',8,4,0),('pid_t pid',12,4,1),('pid_t old_pid',16,4,1)]),
'sys_enter':fmt('sys_enter',302,[('long id',8,8,1),('unsigned long args[6]',16,48,0)])}
def ev(d,delta=10):
    d+=b'\0'*(-len(d)%4); n=len(d)//4
    return struct.pack('<I',n|delta<<5)+d if n<=28 else struct.pack('<II',delta<<5,len(d)+4)+d
H=lambda i,pid: struct.pack('<HBBi',i,0,0,pid)
evs=[ev(H(300,7)+b'a'.ljust(16,b'\0')+struct.pack('<iiq',7,120,1)+b'b'.ljust(16,b'\0')+struct.pack('<ii',8,120)),
 ev(H(5,8)+struct.pack('<Q',0)+b'B|8|x\n\0'), ev(H(5,8)+struct.pack('<Q',0)+b'E\n\0'),
 struct.pack('<II',30|5<<5,1), ev(H(301,8)+struct.pack('<Iii',20|4<<16,8,8)+b'/x\0\0'),
 struct.pack('<III',29|3<<5,8,0), ]
def page(evs,ts=1000,flags=0,size=256,tail=b''):
    b=b''.join(evs); return (struct.pack('<QQ',ts,len(b)|flags)+b+tail).ljust(size,b'\0')
pg=page(evs)+page([ev(H(6,8)+struct.pack('<QQ',0,0x1234)+b'hi\0\0'+struct.pack('<II',1,2))],2000,3<<30,tail=struct.pack('<Q',12))
w('ftrace_pages/pages.bin',b'\0'+b''.join(struct.pack('<H',len(f))+f for f in F.values())+b'\0\0'+pg)
w('ftrace_pages/four.bin',b'\2'+struct.pack('<H',len(F['print']))+F['print']+b'\0\0'+page([ev(H(5,8)+struct.pack('<Q',0)+b'E\n\0')]))
# the stream of a capture
def rec(kind,content,path=b'',cpu=0):
    b=struct.pack('<IHHII',16+len(path)+len(content),kind,len(path),cpu,0)+path+content
    return b+b'\0'*(-len(b)%8)
def file(path,content): return rec(1,content,path.encode())
def cut(p): # behind its last event, as kymo does
    commit=struct.unpack_from('<Q',p,8)[0]; return p[:16+(commit&0x7ffffff)+(8 if commit>>30&1 else 0)]
stats=lambda n: b'entries: 4\noverrun: %d\ncommit overrun: 0\nbytes: 100\ndropped events: 1\n'%n
stream=(file('events/header_page',hp)+file('uname',b'Linux h 6.1.0 x86_64\n')+file('printk_formats',b'0x1234 : "%s %d\\n"\n')
 +b''.join(file('events/%s/%s/format'%('ftrace' if n in ('print','bprint') else 'sched',n),f) for n,f in F.items())
 +file('kallsyms',b'ffffffff81000000 T vfs_read\n')+file('per_cpu/cpu0/stats',stats(2))+file('tasks',b'time 900\n6 6 main\n6 7 worker\n8 8 other one\n')
 +rec(2,cut(pg[:256]))+rec(2,cut(pg[256:]),cpu=1)+rec(9,b'of a later kymo')
 +file('saved_cmdlines',b'7 worker\n')+file('per_cpu/cpu0/stats',stats(42)))
w('ftrace_stream/capture.bin',stream)
w('ftrace_stream/watched.bin',file('set_event_pid',b'8\n4194304\n')+stream)
w('ftrace_stream/bare.bin',file('events/ftrace/print/format',F['print'])+rec(2,page([ev(H(5,8)+struct.pack('<Q',0)+b'E\n\0')])))
# trace.dat v6
def S8(b): return struct.pack('<Q',len(b))+b
def S4(b): return struct.pack('<I',len(b))+b
meta_h=b'header_page\0'+S8(hp)+b'header_event\0'+S8(b'# compressed entry header\n')
meta_f=struct.pack('<I',2)+S8(F['print'])+S8(F['bprint'])
meta_e=struct.pack('<I',2)+b'sched\0'+struct.pack('<I',2)+S8(F['sched_switch'])+S8(F['exec'])+b'raw_syscalls\0'+struct.pack('<I',1)+S8(F['sys_enter'])
kall=S4(b'ffffffff81000000 T vfs_read\nffffffff81000100 t x [m]\n'); pk=S4(b'0x1234 : "%s %d\\n"\n'); cm=S8(b'8 bee\n9 cee\n')
def opt(i,d): return struct.pack('<HI',i,len(d))+d
opts=opt(4,b'[local] mono\n\0')+opt(5,b'Linux h 6.1.0 x86_64\0')+opt(2,b'CPU: 0\nentries: 1\noverrun: 3\ndropped events: 1\n\0')+opt(8,struct.pack('<I',1))+opt(14,struct.pack('<IIQ',1,0,5))+opt(7,b'0\0')
head=b'\x17\x08\x44tracing6\0'+bytes([0,8])+struct.pack('<I',256)
body=head+meta_h+meta_f+meta_e+kall+pk+cm+struct.pack('<I',1)+b'options  \0'+opts+struct.pack('<H',0)+b'flyrecord\0'
off=len(body)+16
w('trace_dat/six.dat',body+struct.pack('<QQ',off,len(pg))+pg)
w('trace_dat/latency.dat',head+meta_h+meta_f+meta_e+kall+pk+cm+struct.pack('<I',1)+b'latency  \0  bash-3994    1d..1   12us : _raw_spin_lock <-lock\n')
# v7
def seven(name,comp):
    d=bytearray(b'\x17\x08\x44tracing7\0'+bytes([0,8])+struct.pack('<I',256)+name+b'\0001\0')
    optat=len(d); d+=b'\0'*8; at={}
    for i,c in ((16,meta_h),(17,meta_f),(18,meta_e),(19,kall),(20,pk),(21,cm)):
        at[i]=len(d); x=comp(c) if comp else c
        body=struct.pack('<II',len(x),len(c))+x if comp else c
        d+=struct.pack('<HHIQ',i,1 if comp else 0,0,len(body))+body
    bufat=len(d); 
    x=comp(pg) if comp else pg
    data=struct.pack('<III',1,len(x),len(pg))+x if comp else pg
    d+=struct.pack('<HHIQ',3,1 if comp else 0,0,len(data)); cpuat=len(d); d+=data
    o=b''.join(opt(i,struct.pack('<Q',a)) for i,a in at.items())+opts+opt(3,struct.pack('<Q',bufat)+b'inst\0local\0'+struct.pack('<II',256,1)+struct.pack('<IQQ',0,cpuat,len(data)))+opt(0,struct.pack('<Q',0))
    struct.pack_into('<Q',d,optat,len(d)); d+=struct.pack('<HHIQ',0,0,0,len(o))+o
    return bytes(d)
w('trace_dat/seven.dat',seven(b'none',None)); w('trace_dat/seven-zlib.dat',seven(b'zlib',zlib.compress))
