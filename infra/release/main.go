// Command release makes the published files of a version: archives of the program platform and of the Terraform provider,
// images without a daemon, the programs for AWS Lambda, a software bill of materials, notices of licences, a manifest for
// krew, notes and checksums. The same commit makes the same bytes in every folder, and the command builds everything twice to show
// that. It is a module of its own, so that its dependencies are in no program. Source: ADR-0010.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"
)

type options struct {
	Root      string     `arg:"" type:"existingdir" help:"Folder of the checkout."`
	Output    string     `required:"" type:"path" placeholder:"DIR" help:"Folder for the release. An earlier one in it is replaced."`
	Tag       string     `help:"Fail unless this is the tag of the release: v and the newest version of CHANGELOG.md."`
	Downloads string     `default:"https://management.platform.sh/releases/download" placeholder:"URL" help:"Where the files will be, in a folder with the name of the tag (${default})."`
	Platform  []platform `default:"linux/amd64,linux/arm64,darwin/amd64,darwin/arm64" placeholder:"OS/ARCH" help:"Platforms of the archives (${default})."`
	Lambda    bool       `negatable:"" default:"true" help:"Make the programs for AWS Lambda (${default})."`
	Twice     bool       `negatable:"" default:"true" help:"Build everything once more, in another folder, and compare (${default})."`
	Cache     bool       `help:"Let the second build use what the first one compiled. It then shows less, and takes a fraction of the time."`
}

// platform is an operating system and a processor, as Go names them.
type platform struct{ system, processor string }

func (p *platform) UnmarshalText(text []byte) error {
	system, processor, _ := strings.Cut(string(text), "/")
	if !slices.Contains([]string{"linux", "darwin"}, system) || !slices.Contains([]string{"amd64", "arm64"}, processor) {
		return fmt.Errorf("unknown platform %q: use linux or darwin, a slash, and amd64 or arm64", text)
	}
	*p = platform{system, processor}
	return nil
}

func (p platform) String() string { return p.system + "_" + p.processor }

func main() {
	var chosen options
	kong.Parse(&chosen, kong.Name("release"))
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	err := run(ctx, chosen)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// run makes the release beside its folder and moves it there at the end, so that a folder always has a whole release or
// the previous one.
func run(ctx context.Context, o options) error {
	r, err := describe(ctx, o.Root)
	if err != nil {
		return err
	}
	if o.Tag != "" && o.Tag != "v"+r.version {
		return fmt.Errorf("the tag %s and the version %s differ: the newest version of CHANGELOG.md names the tag, the commit has it, and nothing stands under Unreleased", o.Tag, r.version)
	}
	if err := os.MkdirAll(filepath.Dir(o.Output), 0o750); err != nil {
		return err
	}
	work, err := os.MkdirTemp(filepath.Dir(o.Output), "release-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(work) }()
	first := filepath.Join(work, "first")
	if err := r.make(ctx, o, first, ""); err != nil {
		return err
	}
	if o.Twice {
		if err := verifySecondBuild(ctx, r, o, first, filepath.Join(work, "again")); err != nil {
			return err
		}
	}
	if err := os.RemoveAll(o.Output); err != nil {
		return err
	}
	if err := os.Rename(first, o.Output); err != nil {
		return err
	}
	fmt.Printf("%s is in %s\n", r.version, o.Output)
	return nil
}

// verifySecondBuild makes the release from a clone of the commit, and compares it with the first release.
func verifySecondBuild(ctx context.Context, r release, o options, first, folder string) error {
	clone := filepath.Join(folder, "elsewhere", "clone")
	if _, err := output(ctx, o.Root, nil, "git", "clone", "--quiet", "--no-hardlinks", ".", clone); err != nil {
		return err
	}
	if _, err := output(ctx, clone, nil, "git", "checkout", "--quiet", r.commit); err != nil {
		return err
	}
	other, err := describe(ctx, clone)
	if err != nil {
		return err
	}
	second, cache := filepath.Join(folder, "second"), filepath.Join(folder, "cache")
	if o.Cache {
		cache = ""
	}
	if err := other.make(ctx, o, second, cache); err != nil {
		return err
	}
	return compare(first, second)
}

// compare fails unless two folders have the same files. It includes the checksums of a release, which name all other
// files.
func compare(first, second string) error {
	firstSums, err := checksums(first)
	if err != nil {
		return err
	}
	secondSums, err := checksums(second)
	if err != nil {
		return err
	}
	var differences []error
	for _, name := range slices.Sorted(keys(firstSums, secondSums)) {
		if firstSums[name] != secondSums[name] {
			differences = append(differences, fmt.Errorf("two builds of %s differ", name))
		}
	}
	return errors.Join(differences...)
}
