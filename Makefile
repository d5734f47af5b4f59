# Assent. `make run` and `make test` are all that a fresh machine needs; `make help` lists the rest.
.DEFAULT_GOAL := help
SHELL := /bin/sh

# Tools are fetched at a pinned version when they are first used.
GOFUMPT := go run mvdan.cc/gofumpt@v0.12.0
STATICCHECK := go run honnef.co/go/tools/cmd/staticcheck@v0.8.2
GOVULNCHECK := go run golang.org/x/vuln/cmd/govulncheck@v1.9.0

FUZZTIME ?= 10s
ARGS ?=
AS_ROOT := $(if $(filter 0,$(shell id -u)),,sudo -E)
PANELS ?= bin/panels.png
# What goes through very many faults, and through only some of them under the race detector.
THOROUGH := ./appliance/audit ./appliance/stick/fat ./confirm

.PHONY: help run demo test check fuzz bench hil image verify-repro boot-test panels build setup clean

help: ## list the commands
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup:
	@.ci/setup

build: setup ## build the three programs into bin/
	@mkdir -p bin
	go build -trimpath -o bin/ ./cmd/assentd ./cmd/assent ./cmd/assentsim

run: build ## the whole box on this PC: phone page and drawn panel (MODEL=, ENGINE=, ARGS=)
	@bin/assentsim run $(ARGS)

demo: build ## the main job unattended, with its transcript (MODEL=, ENGINE=, ARGS=)
	@bin/assentsim demo $(ARGS)

test: ## all hermetic tests, race detector on, browser included
	@.ci/setup test
	@export ASSENT_PYTHON="$$(.ci/python)" ASSENT_ENGINE="$$(go run ./cmd/assent engine path)" ASSENT_BROWSER="$$(command -v chromium || command -v chromium-browser || command -v google-chrome)"; \
	go test -race -timeout 15m ./... && go test -timeout 10m $(THOROUGH)

check: setup ## format, vet, static analysis, known vulnerabilities, boundaries, unit hardening, tidy
	@out=$$($(GOFUMPT) -l .); [ -z "$$out" ] || { echo "gofumpt would change:"; echo "$$out"; exit 1; }
	go vet ./...
	GOOS=linux GOARCH=arm64 go vet ./...
	$(STATICCHECK) ./...
	go test -count=1 -run 'TestImports|TestEveryPackageSaysWhatItIs' .
	@go test -count=1 -v -run 'TestExposure|TestUnitsFitTogether' ./systemd | grep -E 'SKIPPED|of [0-9]|exposure|---|^ok|FAIL'; go test -run 'TestExposure|TestUnitsFitTogether' ./systemd >/dev/null
	go mod tidy -diff
	@out=$$($(GOVULNCHECK) ./... 2>&1) && echo "vulnerabilities: none known" || case "$$out" in \
	  *"exit status 3"*) echo "$$out"; exit 1 ;; \
	  *) echo "vulnerabilities: NOT CHECKED (the database cannot be reached)" ;; esac

fuzz: setup ## every fuzz target for FUZZTIME each
	@go list -f '{{.Dir}}' ./... | while read -r dir; do \
	  grep -hoE '^func Fuzz[A-Za-z0-9_]+' "$$dir"/*_test.go 2>/dev/null | awk '{print $$2}' | while read -r target; do \
	    echo "== $$target ($$dir)"; (cd "$$dir" && go test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) .) </dev/null || exit 1; \
	  done || exit 1; \
	done

bench: build ## figures as ratios, one line each: name value unit limit (ONLY=turn)
	@case "$(ONLY)" in audit|panel) ;; *) bin/assentsim bench $(if $(ONLY),-only $(ONLY)) $(ARGS) ;; esac
	@[ "$(or $(ONLY),audit)" != audit ] || (cd appliance/audit/peers && go run .)
	@[ "$(or $(ONLY),panel)" != panel ] || .ci/bench-panel

hil: ## the real drivers and the real panel on the box's kernel, in an emulator with simulated lines and I2C
	@.ci/setup hil
	@go run ./image/hil $(ARGS)

image: ## the flashable image, in bin/image/ (needs root), and bin/assent, which writes it to a card, and bin/assentd
	@.ci/setup image
	@mkdir -p bin
	go build -trimpath -o bin/ ./cmd/assent ./cmd/assentd
	@$(AS_ROOT) go run ./image/build $(ARGS)

verify-repro: ## build the image a second time, elsewhere and from nothing but the packages, and compare
	@.ci/setup image
	@$(AS_ROOT) go run ./image/build -verify $(ARGS)

boot-test: ## boots the image (make image) in an emulator and does with it what people do (ARGS="-only job")
	@.ci/setup boot
	@go run ./image/boot $(ARGS)

panels: ## every screen of the panel on one picture (PANELS=bin/panels.png)
	@mkdir -p bin
	@go run ./confirm/screen/screentest/sheet $(PANELS) && echo $(PANELS)

clean: ## remove bin/ (downloads stay in the cache)
	rm -rf bin
