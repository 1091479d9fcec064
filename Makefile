# Short names for the verbs of ./run; `./run help` explains them.
.PHONY: build test test-gpu demo bench fuzz clean
build test test-gpu demo bench fuzz:
	./run $@
clean:
	rm -rf build
