# Short verbs over ./run, which says what each does.
.PHONY: build test test-gpu demo bench fuzz clean
build test test-gpu demo bench fuzz:
	./run $@
clean:
	rm -rf build
