# The thin front: each target installs what is missing, configures, builds and runs. Everything else is CMake's business
# (CMakePresets.json).
.DEFAULT_GOAL := build
JOBS ?= $(shell nproc)

.PHONY: help build demo test tidy bench format clean
help:
	@echo "make build   build/release/switchyard"
	@echo "make demo    serve the two bundled models and stream a completion from each"
	@echo "make test    every test, through ctest"
	@echo "make tidy    clang-tidy over all sources: a quarter of an hour at first"
	@echo "make bench   measure this machine: read bandwidth, kernels, decoding"
	@echo "make format  clang-format over all sources"
	@echo "make clean   remove build/"

build:
	@tools/install_dependencies.sh build
	@cmake --preset release --log-level=WARNING
	@cmake --build --preset release --target switchyard -j $(JOBS)

demo: build
	@tools/demo.sh build/release/switchyard

test:
	@tools/install_dependencies.sh test
	@cmake --preset release --log-level=WARNING
	@cmake --build --preset release -j $(JOBS)
	@ctest --preset release -j $(JOBS)

tidy:
	@tools/install_dependencies.sh test
	@cmake --preset release --log-level=WARNING
	@cmake --build --preset release --target switchyard_proto -j $(JOBS)
	@tools/tidy.sh build/release

bench:
	@tools/install_dependencies.sh test
	@cmake --preset release --log-level=WARNING
	@cmake --build --preset release --target kernel_bench decode_bench -j $(JOBS)
	@build/release/tests/benchmarks/kernel_bench
	@build/release/tests/benchmarks/decode_bench

format:
	@git ls-files '*.h' '*.cc' '*.cu' '*.cuh' | xargs clang-format-14 -i

clean:
	@rm -rf build
