// Package scale_test reproduces the figures of docs/scale.md: it simulates the threads of Redis that serve authentications and writes,
// from the processor times that were measured. Nothing here measures. Source: ADR-0040.
package scale_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Measured processor times of the thread of Redis, in microseconds, and sizes in bytes. docs/scale.md says where they come from.
const (
	// authentication is the time of a request with an access key (ADR-0027).
	authentication = 11.2
	// record is the time of an authentication with a record of its own (ADR-0027, prototype).
	record = 6.8
	// create is the time of a create, with its authentication (docs/evidence/speed.md).
	create = 100
	// keyBytes and recordBytes are the memory of an access key, and of its authentication record.
	keyBytes    = 2156
	recordBytes = 468
	// slots is the number of slots of authentication records.
	slots = 256
)

// row is a line of the table: the work of each second, and the threads that do it.
type row struct {
	layout string
	// primaries is the number of primaries with authentications. objects is true if one more primary has only the objects.
	primaries int
	objects   bool
	service   float64
	// authentications and creates are requests a second.
	authentications, creates int
}

// The layouts of the page.
const (
	together = "one slot"
	spread   = "records in 256 slots"
)

var rows = []row{
	{together, 1, false, authentication, 10_000, 0},
	{together, 1, false, authentication, 30_000, 3_000},
	{together, 1, false, authentication, 60_000, 0},
	{together, 1, false, authentication, 80_000, 0},
	{together, 1, false, authentication, 100_000, 0},
	{spread, 1, false, record, 100_000, 0},
	{spread, 2, true, record, 100_000, 3_000},
	{spread, 3, true, record, 100_000, 3_000},
	{spread, 6, true, record, 300_000, 3_000},
}

// outcome describes the busiest thread with authentications.
type outcome struct {
	// busy is the share of time in which the thread works. From 1 on the queue grows without end.
	busy float64
	// half and most are the median and the 99th percentile of the time that an authentication spends at Redis, in microseconds.
	half, most float64
}

// simulate runs the queue of the busiest primary that authenticates: requests come at random moments, and one thread serves them in
// their order.
func simulate(r row) outcome {
	share := math.Ceil(slots/float64(r.primaries)) / slots
	rate, creates := float64(r.authentications)*share/1e6, float64(r.creates)/1e6
	if r.objects {
		creates = 0
	}
	result := outcome{busy: rate*r.service + creates*create}
	if result.busy >= 1 {
		return result
	}
	const requests = 2_000_000
	random := rand.New(rand.NewPCG(1, 2))
	times := make([]float64, 0, requests)
	waiting := 0.0
	for range requests {
		took := r.service
		isCreate := random.Float64() < creates/(rate+creates)
		if isCreate {
			took = create
		}
		if !isCreate {
			times = append(times, waiting+took)
		}
		waiting = max(0, waiting+took-random.ExpFloat64()/(rate+creates))
	}
	slices.Sort(times)
	result.half, result.most = times[len(times)/2], times[len(times)*99/100]
	return result
}

// line returns a row in the form of the page.
func line(r row, o outcome) string {
	primaries := strconv.Itoa(r.primaries)
	if r.objects {
		primaries += " + 1 for objects"
	}
	text := fmt.Sprintf("| %s | %s | %s | %s | %.0f %% |", r.layout, primaries, thousands(r.authentications), thousands(r.creates), 100*o.busy)
	if o.busy >= 1 {
		return text + " no end | no end |"
	}
	return text + fmt.Sprintf(" %.0f | %.0f |", o.half, o.most)
}

func thousands(n int) string {
	if n < 1000 {
		return strconv.Itoa(n)
	}
	return fmt.Sprintf("%s,%03d", thousands(n/1000), n%1000)
}

// roundDown returns a rate in whole thousands, rounded down.
func roundDown(rate float64) string { return thousands(int(rate/1000) * 1000) }

// page returns the text of docs/scale.md.
func page(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../docs/scale.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// The table of the page agrees with the simulation. Times may differ by 5 %, since processors round differently.
func TestTable(t *testing.T) {
	t.Parallel()
	text := page(t)
	for _, r := range rows {
		want := line(r, simulate(r))
		cells := strings.Split(want, "|")
		begin := strings.Join(cells[:6], "|") + "|"
		_, rest, found := strings.Cut(text, begin)
		if !found {
			t.Errorf("the page lacks the line\n%s", want)
			continue
		}
		rest, _, _ = strings.Cut(rest, "\n")
		shown := strings.Split(rest, "|")
		for i, cell := range cells[6:8] {
			if len(shown) < 2 || !nearlyEqual(shown[i], cell) {
				t.Errorf("the page has %s%s, want\n%s", begin, rest, want)
				break
			}
		}
	}
}

// nearlyEqual reports whether two cells are the same text, or numbers within 5 %.
func nearlyEqual(a, b string) bool {
	x, errX := strconv.ParseFloat(strings.TrimSpace(a), 64)
	y, errY := strconv.ParseFloat(strings.TrimSpace(b), 64)
	if errX != nil || errY != nil {
		return strings.TrimSpace(a) == strings.TrimSpace(b)
	}
	return math.Abs(x-y) <= max(1, 0.05*y)
}

// With equal service times and random arrivals, the mean waiting time is known. The simulation must agree with it.
func TestSimulation(t *testing.T) {
	t.Parallel()
	for _, busy := range []float64{0.3, 0.6} {
		rate := busy / authentication
		random, waiting, sum := rand.New(rand.NewPCG(3, 4)), 0.0, 0.0
		const requests = 2_000_000
		for range requests {
			sum += waiting
			waiting = max(0, waiting+authentication-random.ExpFloat64()/rate)
		}
		if want, got := busy*authentication/(2*(1-busy)), sum/requests; math.Abs(got-want) > 0.05*want {
			t.Errorf("at %.1f a request waits %.2f us, want %.2f", busy, got, want)
		}
	}
}

// The other figures of the page follow from the measured ones.
func TestFigures(t *testing.T) {
	t.Parallel()
	const keys = 10_000_000
	for what, figure := range map[string]string{
		"memory of ten million keys":              fmt.Sprintf("%.1f GB", keys*keyBytes/1e9),
		"memory of their records":                 fmt.Sprintf("%.1f GB", keys*recordBytes/1e9),
		"authentications that one thread can do":  roundDown(1e6 / authentication),
		"authentications from records":            roundDown(1e6 / record),
		"authentications at 70 % of one thread":   roundDown(0.7e6 / authentication),
		"creates at 70 % of one thread":           roundDown(0.7e6 / create),
		"memory of the records on each of three":  fmt.Sprintf("%.2f GB", keys*recordBytes/1e9*math.Ceil(slots/3.0)/slots),
		"pages of a list of ten million keys":     thousands(keys / 500),
		"share of the busiest of three, in slots": fmt.Sprintf("%.0f of %d", math.Ceil(slots/3.0), slots),
		"hours of creates at 3,000 a second":      fmt.Sprintf("%.1f hours", keys/3000.0/3600),
		"processors for 100,000 authentications":  fmt.Sprintf("%.1f processors", 100_000*0.067/1000),
	} {
		if !strings.Contains(page(t), figure) {
			t.Errorf("%s: the page lacks %s", what, figure)
		}
	}
}

// slot returns the slot of a key in a Redis Cluster: CRC16 (XMODEM) of its hash tag, modulo 16384.
func slot(tag string) int {
	var crc uint16
	for _, b := range []byte(tag) {
		crc ^= uint16(b) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
	}
	return int(crc) % 16384
}

// The page lists the slots of the resources.
func TestSlots(t *testing.T) {
	t.Parallel()
	text := page(t)
	for _, resource := range []string{
		"ownedaccesskeys", "directclusterendpointtokens", "virtualclusterinstances", "users", "teams", "configs", "signingkeys", "audit",
		"retiredkeys", "scheduledruns", "projects",
	} {
		if want := fmt.Sprintf("| `%s` | %d |", resource, slot(resource)); !strings.Contains(text, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
}
