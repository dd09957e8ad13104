	
p
+process_cpu:cpu:nanoseconds:cpu:nanoseconds{a="b"} (@0:

mainR 00000000000000000000000000000000p
+process_cpu:cpu:nanoseconds:cpu:nanoseconds{a="b"} (@0:

mainR 00000000000000000000000000000000
p
+process_cpu:cpu:nanoseconds:cpu:nanoseconds{a="b"} (@0:

mainR 00000000000000000000000000000000