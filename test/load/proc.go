package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// ticks is the number of clock ticks of /proc in a second. Linux has used this value on every architecture for user space.
const ticks = 100

// processes are the ids of processes whose processor times are added up.
type processes []int

// processorTime returns the processor time of the processes since their start, in seconds, in user and in kernel mode.
func (p processes) processorTime() (float64, error) {
	sum := 0.0
	for _, pid := range p {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			return 0, fmt.Errorf("reading the processor time of a process: %w", err)
		}
		seconds, err := parseStat(text)
		if err != nil {
			return 0, err
		}
		sum += seconds
	}
	return sum, nil
}

// parseStat reads the processor time, in seconds, from the text of /proc/PID/stat.
func parseStat(text []byte) (float64, error) {
	// The name of the program is in parentheses, and may contain blanks and parentheses.
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	// After the name, utime and stime are the fields 12 and 13.
	const utime, stime = 11, 12
	if len(fields) <= stime {
		return 0, errors.New("/proc/PID/stat has too few fields")
	}
	sum := 0.0
	for _, field := range fields[utime : stime+1] {
		value, err := strconv.ParseUint(string(field), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("/proc/PID/stat: %w", err)
		}
		sum += float64(value)
	}
	return sum / ticks, nil
}

// resident returns the memory of the processes, in MB.
func (p processes) resident() (float64, error) {
	sum := 0.0
	for _, pid := range p {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if err != nil {
			return 0, fmt.Errorf("reading the memory of a process: %w", err)
		}
		_, rest, _ := strings.Cut(string(text), "\nVmRSS:")
		var kilobytes float64
		if _, err := fmt.Sscan(rest, &kilobytes); err != nil {
			return 0, fmt.Errorf("reading the memory of a process: %w", err)
		}
		sum += kilobytes * 1024 / 1e6
	}
	return sum, nil
}

// busy returns how many seconds all processors together have worked since the start of the machine.
func busy() (float64, error) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, fmt.Errorf("reading the use of the processors: %w", err)
	}
	line, _, _ := strings.Cut(string(text), "\n")
	fields := strings.Fields(line)
	// cpu user nice system idle iowait irq softirq steal ...: what is neither idle nor waiting has worked.
	if len(fields) < 9 {
		return 0, errors.New("/proc/stat has too few fields")
	}
	sum := 0.0
	for i, field := range fields[1:9] {
		value, err := strconv.ParseUint(field, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("/proc/stat: %w", err)
		}
		if i != 3 && i != 4 {
			sum += float64(value)
		}
	}
	return sum / ticks, nil
}

// machine describes the machine and the source of a run.
type machine struct {
	CPU    string `json:"cpu"`
	Procs  int    `json:"procs"`
	Kernel string `json:"kernel"`
	Go     string `json:"go"`
	// Build is the commit of the measured source, with a mark if the files differ from it. Empty: unknown.
	Build string `json:"build,omitempty"`
	// LoadBefore and LoadAfter are the average numbers of running processes in the minute before the run and in its last minute.
	LoadBefore string `json:"loadBefore"`
	LoadAfter  string `json:"loadAfter"`
	// Others is the share of the processors, 0 to 1, that programs outside of the run used.
	Others float64 `json:"others"`
	// SyncMicroseconds is the median time of a write of 1 KiB to the disk under the data folders, until it is on the disk.
	SyncMicroseconds float64 `json:"syncMicroseconds"`
}

// describe returns the facts that are known before a run. Folder is on the disk that is measured.
func describe(folder string) (machine, error) {
	m := machine{Procs: runtime.NumCPU(), Go: runtime.Version(), LoadBefore: loadAverage(), CPU: "unknown", Kernel: "unknown"}
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		if _, rest, found := strings.Cut(string(text), "model name"); found {
			line, _, _ := strings.Cut(rest, "\n")
			m.CPU = strings.Trim(line, "\t :")
		}
	}
	if text, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		m.Kernel = "Linux " + strings.TrimSpace(string(text))
	}
	// A source folder without git has no commit.
	if text, err := exec.Command("git", "describe", "--always", "--dirty").Output(); err == nil {
		m.Build = strings.TrimSpace(string(text))
	}
	var err error
	m.SyncMicroseconds, err = syncTime(folder)
	return m, err
}

// loadAverage returns the load average of the last minute.
func loadAverage() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	first, _, _ := strings.Cut(string(text), " ")
	return first
}

// syncTime measures how long a small write to the disk takes, in microseconds: the median of a hundred.
func syncTime(folder string) (float64, error) {
	path := filepath.Join(folder, "sync")
	file, err := os.Create(path)
	if err != nil {
		return 0, fmt.Errorf("measuring the disk: %w", err)
	}
	defer func() { _ = os.Remove(path) }()
	defer func() { _ = file.Close() }()
	var took []time.Duration
	for range 100 {
		begun := time.Now()
		if _, err := file.Write(make([]byte, 1024)); err != nil {
			return 0, fmt.Errorf("measuring the disk: %w", err)
		}
		if err := file.Sync(); err != nil {
			return 0, fmt.Errorf("measuring the disk: %w", err)
		}
		took = append(took, time.Since(begun))
	}
	slices.Sort(took)
	return percentile(took, 50), nil
}
