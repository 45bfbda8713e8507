// Command plane is the control plane that Maniple is tested against: etcd, kube-apiserver, kwok and the
// controllers of Kubernetes' own workloads in one binary, so that one link suffices. plane.py builds, starts
// and stops it.
//
//	plane etcd|kube-apiserver|kwok [flags of that program]
//	plane controllers KUBECONFIG [FEATURE=true,...]
//	plane key FILE    writes the key that signs service account tokens
//
// With MANIPLE_PLANE_OWNER set to a process id, the process group ends when that process is gone.
package main

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"time"

	"github.com/spf13/pflag"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // the server's own metrics
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	"sigs.k8s.io/kwok/pkg/config"
	kwok "sigs.k8s.io/kwok/pkg/kwok/cmd"
	"sigs.k8s.io/kwok/pkg/log"
	"sigs.k8s.io/kwok/pkg/utils/signals"
)

const ownerPeriod = 200 * time.Millisecond

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "plane:", err)
		os.Exit(1)
	}
}

func run() error {
	if len(os.Args) < 2 {
		return errors.New("usage: plane etcd|kube-apiserver|kwok|controllers|key ARGUMENTS")
	}
	if err := endWithOwner(os.Getenv("MANIPLE_PLANE_OWNER")); err != nil {
		return err
	}
	// The programs read os.Args themselves and expect their own name in front.
	os.Args = os.Args[1:]
	switch name := os.Args[0]; {
	case name == "etcd":
		etcdmain.Main(os.Args)
		return nil
	case name == "kube-apiserver":
		os.Exit(cli.Run(apiserver.NewAPIServerCommand()))
		return nil
	case name == "kwok":
		return runKwok()
	case name == "controllers":
		return runControllers(os.Args[1:])
	case name == "key" && len(os.Args) == 2:
		return writeKey(os.Args[1])
	default:
		return fmt.Errorf("no program %q", name)
	}
}

// endWithOwner kills this process group once the owner is gone. The whole group, because a member that
// is stopped by a test cannot look for itself; kill, because nothing that the group holds outlives it.
func endWithOwner(owner string) error {
	if owner == "" {
		return nil
	}
	pid, err := strconv.Atoi(owner)
	if err != nil || pid <= 0 {
		return fmt.Errorf("MANIPLE_PLANE_OWNER is %q, not a process id", owner)
	}
	go func() {
		for alive(pid) {
			time.Sleep(ownerPeriod)
		}
		_ = syscall.Kill(0, syscall.SIGKILL)
	}()
	return nil
}

func alive(pid int) bool {
	if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return false
	}
	// A process that ended and was not waited for still takes signals. Where there is no /proc, it counts.
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return true
	}
	_, state, _ := bytes.Cut(stat[bytes.LastIndexByte(stat, ')')+1:], []byte(" "))
	return !bytes.HasPrefix(state, []byte("Z"))
}

// runKwok gives kwok a flag set of its own: the packages of kube-apiserver have put theirs, with the same
// names and other types, on the global one.
func runKwok() error {
	pflag.CommandLine = pflag.NewFlagSet("kwok", pflag.ExitOnError)
	flags := pflag.NewFlagSet("global", pflag.ContinueOnError)
	flags.ParseErrorsAllowlist.UnknownFlags = true
	flags.Usage = func() {}
	ctx, _ := log.InitFlags(signals.SetupSignalContext(), flags)
	ctx, err := config.InitFlags(ctx, flags)
	if err != nil {
		return err
	}
	command := kwok.NewCommand(ctx)
	command.PersistentFlags().AddFlagSet(flags)
	return command.ExecuteContext(ctx)
}

func writeKey(path string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	block := pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})
	return os.WriteFile(path, block, 0o600)
}
