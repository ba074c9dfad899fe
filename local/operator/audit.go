package operator

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"management.platform.sh/local/state"
	"management.platform.sh/shared/audit/chain"
	"management.platform.sh/shared/audit/filesink"
	"management.platform.sh/shared/audit/redissink"
	"management.platform.sh/shared/model/secret"
)

// Audit is the command audit, with the commands below it.
type Audit struct {
	Verify Verify `cmd:"" help:"Verify the hash chain of an audit log. Report events that were changed, removed or cut off."`
}

// Verify is the command audit verify: it follows the hash chain of an audit log. Source: ADR-0016.
type Verify struct {
	Path     string        `arg:"" placeholder:"DIR" help:"Folder of the audit log (audit.path of the platform configuration)."`
	Redis    secret.String `env:"PLATFORM_REDIS_URL" placeholder:"URL" help:"State that holds a copy of the head of the chain. Absent: the log is compared with audit.head in its folder only."`
	Head     string        `placeholder:"'NUMBER HASH'" help:"A head that this command printed earlier. The log must contain it."`
	Complete bool          `help:"Report a log that does not begin with event 1, for example because old files were removed."`
}

// Run prints the findings. It returns an error if the chain is broken.
func (c *Verify) Run(ctx context.Context) error {
	directory, err := filepath.Abs(c.Path)
	if err != nil {
		return fmt.Errorf("finding the folder: %w", err)
	}
	var anchors []chain.Anchored
	if c.Head != "" {
		head, err := chain.ParseHead(c.Head)
		if err != nil {
			return fmt.Errorf("--head: %w", err)
		}
		anchors = append(anchors, chain.Anchored{Where: "--head", Head: head})
	}
	if c.Redis != "" {
		client, err := state.Connect(ctx, redisAt(c.Redis))
		if err != nil {
			return err
		}
		defer func() { _ = client.Close() }()
		head, err := redissink.NewAnchor(client).Load(ctx, directory)
		if err != nil {
			return fmt.Errorf("reading the head from the state: %w", err)
		}
		if head.Sequence > 0 {
			anchors = append(anchors, chain.Anchored{Where: "the state", Head: head})
		}
	}
	written := filesink.InUse(directory)
	report, err := chain.Verify(directory, anchors...)
	if err != nil {
		return err
	}
	findings := report.Findings
	if report.Events > 0 && !report.Ended && !written && !filesink.InUse(directory) {
		findings = append(findings, fmt.Sprintf(
			"event %d does not end the log, and no process writes to it: its process was killed, or the end was cut off", report.Head.Sequence))
	}
	for _, note := range report.Notes {
		fmt.Println("note:", note)
	}
	if c.Complete && report.First > 1 {
		findings = append([]string{fmt.Sprintf("the log begins with event %d, not with event 1", report.First)}, findings...)
	}
	for _, finding := range findings {
		fmt.Println(finding)
	}
	fmt.Printf("%d events in %d files, from %d on; head %s\n", report.Events, report.Files, report.First, report.Head)
	if len(findings) > 0 {
		return errors.New("the hash chain is broken")
	}
	return nil
}
