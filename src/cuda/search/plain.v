cc1plus: fatal error: one.cu: No such file or directory
compilation terminated.

real	0m0.092s
user	0m0.015s
sys	0m0.000s
